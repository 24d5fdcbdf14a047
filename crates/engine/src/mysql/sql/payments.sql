-- Payments in the order in which they were received: the one before, status or null twice, how many.
SELECT p.provider, p.payment_id, p.order_id, p.hold, p.amount, p.currency, p.email, p.authorized, p.captured, p.failed, p.canceled, p.refunded, p.status, p.received_at, p.capture_failed, p.refund_failed, p.disputed, p.n
FROM payments p WHERE p.n > ? AND (? IS NULL OR p.status = ?)
    AND (p.order_id IS NOT NULL OR p.hold IS NOT NULL) ORDER BY p.n LIMIT ?
