-- Whether nobody has written a SKU since it was read: SKU, revision.
SELECT COUNT(*) FROM stock WHERE sku = ? AND revision = ?
