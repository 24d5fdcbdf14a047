-- A SKU's counters as of a moment. $1: SKU, $2: now.
SELECT s.sku, s.available - moved.claimed + lapsed.units, s.held + moved.claimed - lapsed.units, s.sold,
       s.limit_per_customer, s.version
FROM stock s,
     LATERAL (SELECT s.carved - (SELECT count(*) FROM units u WHERE u.sku = s.sku)) AS moved (claimed),
     LATERAL (SELECT coalesce(sum(quantity), 0)::bigint FROM claims c WHERE c.sku = s.sku AND c.expires_at <= $2)
         AS lapsed (units)
WHERE s.sku = $1
