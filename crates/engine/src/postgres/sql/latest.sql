-- The latest hold of each order that was released or expired. $1: orders.
SELECT DISTINCT ON (order_id) order_id, id
FROM holds WHERE order_id = ANY ($1::text[]) AND status IN ('released', 'expired') ORDER BY order_id, id DESC
