-- What idempotency keys were used for.
SELECT used_key, used_for FROM receipts WHERE used_key IN (?)
