-- Takes the last units of a SKU out of rows of their own: SKU, how many.
DELETE FROM units WHERE sku = ? ORDER BY n DESC LIMIT ?
