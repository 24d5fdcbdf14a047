-- Orders and their holds in byte order. $1: the one before or an empty text, $2: how many.
SELECT order_id, hold FROM orders WHERE order_id > $1 ORDER BY order_id LIMIT $2
