-- Holds by the entry that gave them a line of a SKU: SKU, the entry before, how many.
SELECT h.id, h.order_id, h.status, h.lines_text, h.customer_id, h.amount, h.currency, h.created_at, h.expires_at, h.late, h.payment_ref, h.metadata, l.seq
FROM ledger l STRAIGHT_JOIN holds h ON h.id = l.hold
WHERE l.sku = ? AND l.seq > ? AND (l.kind = 'held' OR l.kind = 'changed' AND l.reason = 'line added')
ORDER BY l.seq LIMIT ?
