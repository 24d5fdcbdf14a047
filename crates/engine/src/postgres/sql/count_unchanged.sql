-- How many of the SKUs nobody has written since they were read. $1: SKUs, $2: revisions.
SELECT count(*) FROM stock s JOIN unnest($1::text[], $2::bigint[]) AS u (sku, revision)
ON s.sku = u.sku AND s.revision = u.revision
WHERE s.sku = ANY ($1::text[])
