-- SKUs as they are now, where nobody has written them since they were read at revision $8; $10: whoever has. Nor under a
-- higher fence than $9, which is 0 where there is none.
UPDATE stock s
SET available = u.available, held = u.held, sold = u.sold, limit_per_customer = u.limit_per_customer,
    version = u.version, carved = u.carved, revision = s.revision + 1, fence = greatest(s.fence, u.fence)
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::bigint[], $9::bigint[]) AS u (sku, available, held, sold, limit_per_customer, version, carved, revision, fence)
WHERE s.sku = ANY ($1::text[]) AND s.sku = u.sku AND (s.revision = u.revision OR $10)
    AND (u.fence = 0 OR s.fence <= u.fence)
