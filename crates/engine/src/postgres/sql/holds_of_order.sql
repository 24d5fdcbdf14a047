-- Every hold of an order. $1: the order.
SELECT id, order_id, status, lines, customer_id, amount, currency, created_at, expires_at, late, payment_ref, metadata
FROM holds WHERE order_id = $1 AND status IN ('held', 'confirmed')
UNION ALL
SELECT id, order_id, status, lines, customer_id, amount, currency, created_at, expires_at, late, payment_ref, metadata
FROM holds WHERE order_id = $1 AND status IN ('released', 'expired')
ORDER BY id
