-- A SKU's counters, the units claimed by way of `units`, and those of lapsed holds: now, SKU.
SELECT s.sku, s.available, s.held, s.sold, s.limit_per_customer, s.version,
       s.carved - (SELECT COUNT(*) FROM units u WHERE u.sku = s.sku),
       (SELECT CAST(COALESCE(SUM(c.quantity), 0) AS SIGNED) FROM claims c WHERE c.sku = s.sku AND c.expires_at <= ?)
FROM stock s WHERE s.sku = ?
