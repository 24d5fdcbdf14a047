-- The lines of orders: the order before or an empty text, how many.
SELECT order_id, lines_text FROM orders WHERE order_id > ? ORDER BY order_id LIMIT ?
