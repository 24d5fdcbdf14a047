-- The holds that claim units for customers, locked.
SELECT id, order_id, status, lines_text, customer_id, amount, currency, created_at, expires_at, late, payment_ref, metadata
FROM holds WHERE holding_customer IN (?) ORDER BY id FOR UPDATE
