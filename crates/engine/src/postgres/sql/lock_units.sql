-- What is left of the units in rows of their own, locked; waits for those that others are taking. $1: SKUs.
SELECT sku, count(*), max(n) FROM (
    SELECT sku, n FROM units WHERE sku = ANY ($1::text[]) ORDER BY sku, n FOR UPDATE
) AS locked GROUP BY sku
