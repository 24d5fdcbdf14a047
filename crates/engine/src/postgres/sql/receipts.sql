-- What idempotency keys were used for. $1: keys.
SELECT key, used_for FROM receipts WHERE key = ANY ($1::text[])
