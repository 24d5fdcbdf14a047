-- Entries of an order, and of one of its SKUs if told. $1: the one before, $2: how many, $3: order, $4: SKU or null.
SELECT seq, at, kind, sku, available, held, sold, hold, order_id, reason
FROM ledger WHERE seq > $1 AND order_id = $3 AND ($4::text IS NULL OR sku = $4) ORDER BY seq LIMIT $2
