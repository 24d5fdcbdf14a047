-- What customers have bought; pairs that nobody asked for may be among what is found.
SELECT customer_id, sku, units FROM purchases WHERE customer_id IN (?) AND sku IN (?)
