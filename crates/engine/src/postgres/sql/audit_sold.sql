-- The lines of orders. $1: the order before or null, $2: how many.
SELECT order_id, lines FROM orders WHERE $1::text IS NULL OR order_id > $1 ORDER BY order_id LIMIT $2
