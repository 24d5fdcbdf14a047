-- Units that shall not stand in rows of their own any more.
DELETE FROM units WHERE sku IN (?)
