-- A SKU as it is now, where nobody has written it since it was read at a revision; or whoever has. The last three values
-- are the SKU, the revision, and whether it does not matter.
UPDATE stock
SET available = ?, held = ?, sold = ?, limit_per_customer = ?, version = ?, carved = ?, revision = revision + 1
WHERE sku = ? AND (revision = ? OR ?)
