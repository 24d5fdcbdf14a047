-- Every hold of an order.
SELECT id, order_id, status, lines_text, customer_id, amount, currency, created_at, expires_at, late, payment_ref, metadata
FROM holds WHERE order_id = ? ORDER BY id
