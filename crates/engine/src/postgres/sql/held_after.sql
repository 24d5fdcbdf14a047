-- Holds with status held, by id: those that have claims. $1: the one before, $2: how many.
SELECT id, order_id, status, lines, customer_id, amount, currency, created_at, expires_at, late, payment_ref, metadata
FROM holds
WHERE id = ANY (ARRAY(SELECT DISTINCT hold FROM claims WHERE hold > $1 ORDER BY hold LIMIT $2))
ORDER BY id
