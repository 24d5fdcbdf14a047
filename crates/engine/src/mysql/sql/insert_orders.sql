-- New orders.
INSERT INTO orders (hold, order_id, status, lines_text, payment_provider, payment_id, confirmed_at, late, customer_id,
    amount, currency)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*end*/
