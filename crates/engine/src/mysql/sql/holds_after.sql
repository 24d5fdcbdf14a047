-- Holds in the order in which they were made: the one before, how many.
SELECT id, order_id, status, lines_text, customer_id, amount, currency, created_at, expires_at, late, payment_ref, metadata
FROM holds WHERE id > ? ORDER BY id LIMIT ?
