-- Payments, locked. $1: providers, $2: payment ids; others may be among what is found.
SELECT p.provider, p.payment_id, p.order_id, p.hold, p.amount, p.currency, p.email, p.authorized, p.captured, p.failed, p.canceled, p.refunded, p.status, p.received_at, p.capture_failed, p.refund_failed, p.disputed
FROM payments p WHERE p.provider = ANY ($1::text[]) AND p.payment_id = ANY ($2::text[]) ORDER BY p.n FOR UPDATE
