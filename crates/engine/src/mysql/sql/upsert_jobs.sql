-- Jobs as they are now.
INSERT INTO jobs (provider, payment_id, is_capture, kind, reason, state, idempotency_key, amount, currency, created_at,
    attempts, next_at, reference, error)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*end*/
ON DUPLICATE KEY UPDATE kind = VALUES(kind), reason = VALUES(reason), state = VALUES(state),
    idempotency_key = VALUES(idempotency_key), amount = VALUES(amount), currency = VALUES(currency), created_at = VALUES(created_at),
    attempts = VALUES(attempts), next_at = VALUES(next_at), reference = VALUES(reference), error = VALUES(error)
