-- Entries of a SKU. $1: the one before, $2: how many, $3: SKU.
SELECT seq, at, kind, sku, available, held, sold, hold, order_id, reason
FROM ledger WHERE seq > $1 AND sku = $3 ORDER BY seq LIMIT $2
