-- Payments that wait for a hold of these orders, oldest first.
SELECT order_id, provider, payment_id
FROM payments WHERE order_id IN (?) AND status IN ('unmatched', 'needs_attention') ORDER BY n
