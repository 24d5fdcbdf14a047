-- Takes units of a SKU, passing over those that others are taking. $1: SKU, $2: how many.
DELETE FROM units WHERE sku = $1 AND n = ANY (ARRAY(
    SELECT n FROM units WHERE sku = $1 ORDER BY n LIMIT $2 FOR UPDATE SKIP LOCKED
))
