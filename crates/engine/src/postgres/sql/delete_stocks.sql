-- SKUs that are forgotten, where nobody has written them since. $1: SKUs, $2: revisions, $3: whoever has.
DELETE FROM stock s USING unnest($1::text[], $2::bigint[]) AS u (sku, revision)
WHERE s.sku = ANY ($1::text[]) AND s.sku = u.sku AND (s.revision = u.revision OR $3)
