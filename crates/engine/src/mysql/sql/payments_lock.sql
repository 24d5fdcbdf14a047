-- Payments, locked; others may be among what is found.
SELECT p.provider, p.payment_id, p.order_id, p.hold, p.amount, p.currency, p.email, p.authorized, p.captured, p.failed, p.canceled, p.refunded, p.status, p.received_at, p.capture_failed, p.refund_failed, p.disputed
FROM payments p WHERE p.provider IN (?) AND p.payment_id IN (?) ORDER BY p.provider, p.payment_id FOR UPDATE
