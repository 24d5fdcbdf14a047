-- SKUs that are forgotten, where nobody has written them since, nor under a higher fence. $1: SKUs, $2: revisions,
-- $3: fences, 0 where there is none, $4: whoever has.
DELETE FROM stock s USING unnest($1::text[], $2::bigint[], $3::bigint[]) AS u (sku, revision, fence)
WHERE s.sku = ANY ($1::text[]) AND s.sku = u.sku AND (s.revision = u.revision OR $4)
    AND (u.fence = 0 OR s.fence <= u.fence)
