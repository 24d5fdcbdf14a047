-- SKUs, locked in byte order. $1: SKUs.
SELECT sku, available, held, sold, limit_per_customer, version, revision, carved
FROM stock WHERE sku = ANY ($1::text[]) ORDER BY sku FOR UPDATE
