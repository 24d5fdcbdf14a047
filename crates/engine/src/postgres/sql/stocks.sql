-- SKUs in byte order as of a moment. $1: the one before or null, $2: now, $3: how many.
SELECT s.sku, s.available - moved.claimed + lapsed.units, s.held + moved.claimed - lapsed.units, s.sold,
       s.limit_per_customer, s.version
FROM (SELECT * FROM stock WHERE sku > coalesce($1::text, '') ORDER BY sku LIMIT $3) AS s,
     LATERAL (SELECT s.carved - (SELECT count(*) FROM units u WHERE u.sku = s.sku)) AS moved (claimed),
     LATERAL (SELECT coalesce(sum(quantity), 0)::bigint FROM claims c WHERE c.sku = s.sku AND c.expires_at <= $2)
         AS lapsed (units)
ORDER BY s.sku
