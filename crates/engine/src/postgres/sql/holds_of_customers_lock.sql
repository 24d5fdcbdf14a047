-- The holds that claim units for customers, locked. $1: customers.
SELECT id, order_id, status, lines, customer_id, amount, currency, created_at, expires_at, late, payment_ref, metadata
FROM holds WHERE customer_id = ANY ($1::text[]) AND status = 'held' ORDER BY id FOR UPDATE
