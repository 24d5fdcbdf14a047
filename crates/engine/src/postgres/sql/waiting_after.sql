-- Payments that wait for a hold of their order, by number. $1: the one before, $2: how many. Adding 0 keeps the planner
-- from reading every payment in order of its number: those that wait are few, and have an index.
SELECT n, order_id, provider, payment_id FROM payments
WHERE status IN ('unmatched', 'needs_attention') AND order_id IS NOT NULL AND n + 0 > $1 ORDER BY n + 0 LIMIT $2
