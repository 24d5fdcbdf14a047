-- Entries by number: the one before, how many.
SELECT seq, at, kind, sku, available, held, sold, hold, order_id, reason
FROM ledger WHERE seq > ? ORDER BY seq LIMIT ?
