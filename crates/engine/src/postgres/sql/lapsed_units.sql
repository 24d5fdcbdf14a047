-- Units of a SKU that lapsed holds claim. $1: SKU, $2: now, $3: known ones.
SELECT coalesce(sum(quantity), 0)::bigint FROM claims WHERE sku = $1 AND expires_at <= $2 AND hold <> ALL ($3::uuid[])
