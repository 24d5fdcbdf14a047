-- What customers have bought and kept, in byte order. The customer before, or an empty text, twice; the SKU before or an
-- empty text; how many.
SELECT customer_id, sku, units FROM purchases
WHERE customer_id >= ? AND (customer_id > ? OR sku > ?) AND units <> 0 ORDER BY customer_id, sku LIMIT ?
