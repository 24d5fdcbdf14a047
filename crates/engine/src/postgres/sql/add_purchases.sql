-- What customers bought. $1: customers, $2: SKUs, $3: units, each above 0.
INSERT INTO purchases (customer_id, sku, units) SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])
ON CONFLICT (customer_id, sku) DO UPDATE SET units = purchases.units + excluded.units
