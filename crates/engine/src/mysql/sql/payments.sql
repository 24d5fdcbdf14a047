-- Payments in the order in which they were received: the one before, status or null twice, how many.
SELECT p.provider, p.payment_id, p.order_id, p.hold, p.amount, p.currency, p.email, p.authorized, p.captured, p.failed, p.canceled, p.refunded, p.status, p.received_at, p.n
FROM payments p WHERE p.n > ? AND (? IS NULL OR p.status = ?) ORDER BY p.n LIMIT ?
