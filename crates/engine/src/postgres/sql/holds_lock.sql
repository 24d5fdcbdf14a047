-- Holds by id, locked. $1: ids.
SELECT id, order_id, status, lines, customer_id, amount, currency, created_at, expires_at, late, payment_ref, metadata
FROM holds WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE
