-- Which SKUs have lapsed holds. $1: SKUs, $2: now.
SELECT asked.sku FROM unnest($1::text[]) AS asked (sku)
WHERE EXISTS (SELECT 1 FROM claims c WHERE c.sku = asked.sku AND c.expires_at <= $2)
