-- SKUs, not locked.
SELECT sku, available, held, sold, limit_per_customer, version, revision, carved
FROM stock WHERE sku IN (?) ORDER BY sku
