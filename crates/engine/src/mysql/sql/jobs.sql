-- Jobs of payments; others may be among what is found.
SELECT j.provider, j.payment_id, j.kind, j.reason, j.state, j.idempotency_key, j.amount, j.currency, j.created_at, j.attempts, j.next_at, j.reference, j.error
FROM jobs j WHERE j.provider IN (?) AND j.payment_id IN (?) ORDER BY j.n
