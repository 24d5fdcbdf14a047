-- A SKU that is forgotten, where nobody has written it since, or whoever has; nor under a higher fence: SKU, revision,
-- whoever, twice the fence, 0 where there is none.
DELETE FROM stock WHERE sku = ? AND (revision = ? OR ?) AND (? = 0 OR fence <= ?)
