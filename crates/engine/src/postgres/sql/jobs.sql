-- Jobs of payments. $1: providers, $2: payment ids; others may be among what is found.
SELECT j.provider, j.payment_id, j.kind, j.reason, j.state, j.idempotency_key, j.amount, j.currency, j.created_at, j.attempts, j.next_at, j.reference, j.error
FROM jobs j WHERE j.provider = ANY ($1::text[]) AND j.payment_id = ANY ($2::text[]) ORDER BY j.n
