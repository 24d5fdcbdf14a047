-- The same of SKUs in byte order: now, the one before or an empty text, how many.
SELECT s.sku, s.available, s.held, s.sold, s.limit_per_customer, s.version,
       s.carved - (SELECT COUNT(*) FROM units u WHERE u.sku = s.sku),
       (SELECT CAST(COALESCE(SUM(c.quantity), 0) AS SIGNED) FROM claims c WHERE c.sku = s.sku AND c.expires_at <= ?)
FROM stock s WHERE s.sku > ? ORDER BY s.sku LIMIT ?
