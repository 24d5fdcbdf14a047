-- Units that shall not stand in rows of their own any more. $1: SKUs.
DELETE FROM units WHERE sku = ANY ($1::text[])
