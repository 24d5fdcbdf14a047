-- Unmatched payments to look at: received before this moment, or with a hold of their order by now.
(SELECT provider, payment_id FROM payments
 WHERE status = 'unmatched' AND received_at <= ? ORDER BY received_at LIMIT 100)
UNION
(SELECT p.provider, p.payment_id FROM payments p
 WHERE p.status = 'unmatched' AND p.order_id IS NOT NULL
   AND EXISTS (SELECT 1 FROM holds h WHERE h.order_id = p.order_id)
 ORDER BY p.received_at LIMIT 100)
