-- Entries of a SKU: SKU, the one before, how many.
SELECT seq, at, kind, sku, available, held, sold, hold, order_id, reason
FROM ledger WHERE sku = ? AND seq > ? ORDER BY seq LIMIT ?
