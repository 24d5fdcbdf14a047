-- Takes units: SKU, their numbers.
DELETE FROM units WHERE sku = ? AND n IN (?)
