-- What is left of a SKU's units in rows of their own, locked; waits for those that others are taking.
SELECT n FROM units WHERE sku = ? ORDER BY n FOR UPDATE
