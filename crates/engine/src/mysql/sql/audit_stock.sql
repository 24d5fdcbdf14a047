-- The counters of every SKU.
SELECT s.sku, s.available - (s.carved - u.n), s.held + (s.carved - u.n), s.sold
FROM stock s JOIN (
    SELECT s.sku, (SELECT COUNT(*) FROM units u WHERE u.sku = s.sku) AS n FROM stock s
) AS u ON u.sku = s.sku
