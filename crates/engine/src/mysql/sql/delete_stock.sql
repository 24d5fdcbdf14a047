-- A SKU that is forgotten, where nobody has written it since; or whoever has: SKU, revision, whoever.
DELETE FROM stock WHERE sku = ? AND (revision = ? OR ?)
