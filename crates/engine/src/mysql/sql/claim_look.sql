-- Units of a SKU that nobody is taking, locked: SKU, how many.
SELECT n FROM units WHERE sku = ? ORDER BY n LIMIT ? FOR UPDATE SKIP LOCKED
