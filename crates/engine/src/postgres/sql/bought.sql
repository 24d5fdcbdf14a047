-- What customers have bought. $1: customers, $2: SKUs, pairwise.
SELECT p.customer_id, p.sku, p.units
FROM unnest($1::text[], $2::text[]) AS asked (customer_id, sku)
JOIN purchases p ON p.customer_id = asked.customer_id AND p.sku = asked.sku
