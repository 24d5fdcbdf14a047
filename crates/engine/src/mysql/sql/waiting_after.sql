-- Payments that wait for a hold of their order, by number: the one before, how many. Those that wait are few, so they
-- are found by their status and sorted, instead of reading every payment.
SELECT n, order_id, provider, payment_id FROM payments FORCE INDEX (payments_status)
WHERE status IN ('unmatched', 'needs_attention') AND order_id IS NOT NULL AND n > ? ORDER BY n LIMIT ?
