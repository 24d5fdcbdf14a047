-- Payments as they are now.
INSERT INTO payments AS p (provider, payment_id, order_id, hold, amount, currency, email, authorized, captured, failed,
    canceled, refunded, status, received_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::bigint[], $6::text[], $7::text[],
    $8::boolean[], $9::boolean[], $10::boolean[], $11::boolean[], $12::bigint[], $13::text[], $14::bigint[])
ON CONFLICT (provider, payment_id) DO UPDATE SET order_id = excluded.order_id, hold = excluded.hold,
    amount = excluded.amount, currency = excluded.currency, email = excluded.email, authorized = excluded.authorized,
    captured = excluded.captured, failed = excluded.failed, canceled = excluded.canceled, refunded = excluded.refunded,
    status = excluded.status, received_at = excluded.received_at
