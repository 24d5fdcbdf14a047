-- Units of a SKU that lapsed holds claim: SKU, now, known ones.
SELECT CAST(COALESCE(SUM(quantity), 0) AS SIGNED) FROM claims WHERE sku = ? AND expires_at <= ? AND hold NOT IN (?)
