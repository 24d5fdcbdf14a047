-- The counters of every SKU.
SELECT s.sku, s.available - moved.claimed, s.held + moved.claimed, s.sold
FROM stock s, LATERAL (SELECT s.carved - (SELECT count(*) FROM units u WHERE u.sku = s.sku)) AS moved (claimed)
