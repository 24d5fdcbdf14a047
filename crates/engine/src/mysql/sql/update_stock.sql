-- A SKU as it is now, where nobody has written it since it was read at a revision; or whoever has. Nor under a higher
-- fence. The last values are the SKU, the revision, whether it does not matter, and twice the fence: 0 where there is
-- none.
UPDATE stock
SET available = ?, held = ?, sold = ?, limit_per_customer = ?, version = ?, carved = ?, revision = revision + 1,
    fence = GREATEST(fence, ?)
WHERE sku = ? AND (revision = ? OR ?) AND (? = 0 OR fence <= ?)
