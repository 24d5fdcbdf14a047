-- Payments that wait for a hold of these orders, oldest first. $1: orders.
SELECT order_id, provider, payment_id
FROM payments WHERE order_id = ANY ($1::text[]) AND status IN ('unmatched', 'needs_attention') ORDER BY n
