-- Takes the last units out of rows of their own. $1: SKUs, $2: how many of each.
DELETE FROM units u USING (
    SELECT counted.sku, counted.n
    FROM (
        SELECT sku, n, row_number() OVER (PARTITION BY sku ORDER BY n DESC) AS place
        FROM units WHERE sku = ANY ($1::text[])
    ) AS counted
    JOIN unnest($1::text[], $2::bigint[]) AS wanted (sku, units) ON wanted.sku = counted.sku
    WHERE counted.place <= wanted.units
) AS gone
WHERE u.sku = ANY ($1::text[]) AND u.sku = gone.sku AND u.n = gone.n
