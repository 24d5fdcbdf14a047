-- Idempotency keys used. $1: keys, $2: what for.
INSERT INTO receipts (key, used_for) SELECT * FROM unnest($1::text[], $2::text[])
