-- Orders and their holds in byte order: the one before or an empty text, how many.
SELECT order_id, hold FROM orders WHERE order_id > ? ORDER BY order_id LIMIT ?
