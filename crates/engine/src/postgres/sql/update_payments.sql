-- Payments as they are now.
UPDATE payments p
SET order_id = u.order_id, hold = u.hold, amount = u.amount, currency = u.currency, email = u.email,
    authorized = u.authorized, captured = u.captured, failed = u.failed, canceled = u.canceled,
    refunded = u.refunded, status = u.status, received_at = u.received_at,
    capture_failed = u.capture_failed, refund_failed = u.refund_failed, disputed = u.disputed
FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::bigint[], $6::text[], $7::text[],
    $8::boolean[], $9::boolean[], $10::boolean[], $11::boolean[], $12::bigint[], $13::text[], $14::bigint[],
    $15::boolean[], $16::boolean[], $17::boolean[])
    AS u (provider, payment_id, order_id, hold, amount, currency, email, authorized, captured, failed, canceled,
        refunded, status, received_at, capture_failed, refund_failed, disputed)
WHERE p.provider = ANY ($1::text[]) AND p.payment_id = ANY ($2::text[])
    AND p.provider = u.provider AND p.payment_id = u.payment_id
