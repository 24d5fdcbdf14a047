-- Entries by number. $1: the one before, $2: how many.
SELECT seq, at, kind, sku, available, held, sold, hold, order_id, reason
FROM ledger WHERE seq > $1 ORDER BY seq LIMIT $2
