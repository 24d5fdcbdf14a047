-- Refunds and voids in the order in which they became due: the one before, state or null twice, how many.
SELECT j.provider, j.payment_id, j.kind, j.reason, j.state, j.idempotency_key, j.amount, j.currency, j.created_at, j.attempts, j.next_at, j.reference, j.error, j.n
FROM jobs j WHERE NOT j.is_capture AND j.n > ? AND (? IS NULL OR j.state = ?) ORDER BY j.n LIMIT ?
