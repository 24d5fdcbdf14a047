-- What customers have bought. $1: customers, $2: SKUs; pairs that nobody asked for may be among what is found.
SELECT customer_id, sku, units FROM purchases WHERE customer_id = ANY ($1::text[]) AND sku = ANY ($2::text[])
