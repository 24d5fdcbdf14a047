-- What is to be done at a provider by now. $1: provider, $2: now, $3: how many.
SELECT j.provider, j.payment_id, j.kind, j.reason, j.state, j.idempotency_key, j.amount, j.currency, j.created_at, j.attempts, j.next_at, j.reference, j.error
FROM jobs j WHERE j.provider = $1 AND j.state IN ('due', 'requested') AND j.next_at <= $2 ORDER BY j.next_at LIMIT $3
