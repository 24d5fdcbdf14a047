-- The holds that claim units for orders, locked.
SELECT id, order_id, status, lines_text, customer_id, amount, currency, created_at, expires_at, late, payment_ref, metadata
FROM holds WHERE current_order IN (?) AND status = 'held' ORDER BY id FOR UPDATE
