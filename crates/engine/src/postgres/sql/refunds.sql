-- Refunds and voids in the order in which they became due. $1: the one before, $2: state or null, $3: how many.
SELECT j.provider, j.payment_id, j.kind, j.reason, j.state, j.idempotency_key, j.amount, j.currency, j.created_at, j.attempts, j.next_at, j.reference, j.error, j.n
FROM jobs j WHERE NOT j.is_capture AND j.n > $1 AND ($2::text IS NULL OR j.state = $2) ORDER BY j.n LIMIT $3
