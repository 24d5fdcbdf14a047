-- Jobs of payments. $1: providers, $2: payment ids, pairwise.
SELECT j.provider, j.payment_id, j.kind, j.reason, j.state, j.idempotency_key, j.amount, j.currency, j.created_at
FROM unnest($1::text[], $2::text[]) AS asked (provider, payment_id)
JOIN jobs j ON j.provider = asked.provider AND j.payment_id = asked.payment_id
ORDER BY j.n
