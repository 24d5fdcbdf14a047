-- Payments heard of for the first time.
INSERT INTO payments (provider, payment_id, order_id, hold, amount, currency, email, authorized, captured, failed,
    canceled, refunded, status, received_at, capture_failed, refund_failed, disputed)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::bigint[], $6::text[], $7::text[],
    $8::boolean[], $9::boolean[], $10::boolean[], $11::boolean[], $12::bigint[], $13::text[], $14::bigint[],
    $15::boolean[], $16::boolean[], $17::boolean[])
