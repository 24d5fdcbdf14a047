-- What customers gave back. $1: customers, $2: SKUs, $3: units, each below 0.
UPDATE purchases p SET units = p.units + u.units
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS u (customer_id, sku, units)
WHERE p.customer_id = ANY ($1::text[]) AND p.customer_id = u.customer_id AND p.sku = u.sku
