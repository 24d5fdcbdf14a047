-- Idempotency keys used, and what for.
INSERT INTO receipts (used_key, used_for) VALUES /*row*/(?, ?)/*end*/
