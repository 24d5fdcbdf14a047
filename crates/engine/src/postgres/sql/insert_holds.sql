-- New holds.
INSERT INTO holds (id, order_id, status, lines, customer_id, amount, currency, created_at, expires_at, late,
    payment_ref, metadata)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[],
    $8::bigint[], $9::bigint[], $10::boolean[], $11::text[], $12::text[])
