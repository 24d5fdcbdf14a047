-- What customers have bought and kept, in byte order. $1 and $2: customer and SKU before or empty texts, $3: how many.
SELECT customer_id, sku, units FROM purchases
WHERE (customer_id, sku) > ($1, $2) AND units <> 0 ORDER BY customer_id, sku LIMIT $3
