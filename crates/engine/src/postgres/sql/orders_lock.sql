-- Orders, locked. $1: their ids.
SELECT hold, order_id, status, lines, payment_provider, payment_id, confirmed_at, late, customer_id, amount, currency
FROM orders WHERE order_id = ANY ($1::text[]) ORDER BY order_id FOR UPDATE
