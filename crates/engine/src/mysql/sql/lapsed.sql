-- The first lapsed holds on a SKU: SKU, now, known ones, how many.
SELECT hold FROM claims WHERE sku = ? AND expires_at <= ? AND hold NOT IN (?) ORDER BY expires_at, hold LIMIT ?
