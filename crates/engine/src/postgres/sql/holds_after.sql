-- Holds in the order in which they were made. $1: the one before, $2: how many.
SELECT id, order_id, status, lines, customer_id, amount, currency, created_at, expires_at, late, payment_ref, metadata
FROM holds WHERE id > $1 ORDER BY id LIMIT $2
