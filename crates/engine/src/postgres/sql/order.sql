-- An order. $1: its id.
SELECT hold, order_id, status, lines, payment_provider, payment_id, confirmed_at, late, customer_id, amount, currency
FROM orders WHERE order_id = $1
