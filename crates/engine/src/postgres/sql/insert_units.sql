-- Units in rows of their own. $1: SKUs, $2: first numbers, $3: last numbers.
INSERT INTO units (sku, n)
SELECT u.sku, n FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS u (sku, first, last),
    LATERAL generate_series(u.first, u.last) AS n
