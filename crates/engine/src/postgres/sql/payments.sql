-- Payments in the order in which they were received. $1: the one before, $2: status or null, $3: how many.
SELECT p.provider, p.payment_id, p.order_id, p.hold, p.amount, p.currency, p.email, p.authorized, p.captured, p.failed, p.canceled, p.refunded, p.status, p.received_at, p.capture_failed, p.refund_failed, p.disputed, p.n
FROM payments p WHERE p.n > $1 AND ($2::text IS NULL OR p.status = $2)
    AND (p.order_id IS NOT NULL OR p.hold IS NOT NULL) ORDER BY p.n LIMIT $3
