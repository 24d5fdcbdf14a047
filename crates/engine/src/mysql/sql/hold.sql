-- A hold by id.
SELECT id, order_id, status, lines_text, customer_id, amount, currency, created_at, expires_at, late, payment_ref, metadata
FROM holds WHERE id = ?
