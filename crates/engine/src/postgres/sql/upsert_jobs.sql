-- Jobs as they are now.
INSERT INTO jobs (provider, payment_id, is_capture, kind, reason, state, idempotency_key, amount, currency, created_at,
    attempts, next_at, reference, error)
SELECT * FROM unnest($1::text[], $2::text[], $3::boolean[], $4::text[], $5::text[], $6::text[], $7::text[],
    $8::bigint[], $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::text[])
ON CONFLICT (provider, payment_id, is_capture) DO UPDATE SET kind = excluded.kind, reason = excluded.reason,
    state = excluded.state, idempotency_key = excluded.idempotency_key, amount = excluded.amount,
    currency = excluded.currency, created_at = excluded.created_at, attempts = excluded.attempts,
    next_at = excluded.next_at, reference = excluded.reference, error = excluded.error
