-- New orders.
INSERT INTO orders (hold, order_id, status, lines, payment_provider, payment_id, confirmed_at, late, customer_id,
    amount, currency)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[],
    $8::boolean[], $9::text[], $10::bigint[], $11::text[])
