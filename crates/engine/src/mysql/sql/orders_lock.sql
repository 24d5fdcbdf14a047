-- Orders, locked.
SELECT hold, order_id, status, lines_text, payment_provider, payment_id, confirmed_at, late, customer_id, amount, currency
FROM orders WHERE order_id IN (?) ORDER BY order_id FOR UPDATE
