-- Which SKUs have lapsed holds. $1: SKUs, $2: now.
SELECT asked.sku FROM unnest($1::text[]) AS asked (sku)
WHERE (SELECT true FROM claims c WHERE c.sku = asked.sku AND c.expires_at <= $2 LIMIT 1)
