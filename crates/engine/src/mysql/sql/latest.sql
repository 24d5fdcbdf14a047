-- The latest hold of each order that was released or expired.
SELECT order_id, MAX(id)
FROM holds WHERE order_id IN (?) AND status IN ('released', 'expired') GROUP BY order_id
