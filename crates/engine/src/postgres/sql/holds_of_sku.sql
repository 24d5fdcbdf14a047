-- Holds by the entry that gave them a line of a SKU. $1: SKU, $2: the entry before, $3: how many.
SELECT h.id, h.order_id, h.status, h.lines, h.customer_id, h.amount, h.currency, h.created_at, h.expires_at, h.late, h.payment_ref, h.metadata, l.seq
FROM ledger l JOIN holds h ON h.id = l.hold
WHERE l.sku = $1 AND l.seq > $2 AND (l.kind = 'held' OR l.kind = 'changed' AND l.reason = 'line added')
ORDER BY l.seq LIMIT $3
