-- Entries of an order, and of one of its SKUs if told: order, the one before, SKU or null twice, how many.
SELECT seq, at, kind, sku, available, held, sold, hold, order_id, reason
FROM ledger WHERE order_id = ? AND seq > ? AND (? IS NULL OR sku = ?) ORDER BY seq LIMIT ?
