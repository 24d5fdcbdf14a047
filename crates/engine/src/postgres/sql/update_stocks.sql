-- SKUs as they are now, where nobody has written them since they were read at revision $8; $9: whoever has.
UPDATE stock s
SET available = u.available, held = u.held, sold = u.sold, limit_per_customer = u.limit_per_customer,
    version = u.version, carved = u.carved, revision = s.revision + 1
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::bigint[]) AS u (sku, available, held, sold, limit_per_customer, version, carved, revision)
WHERE s.sku = ANY ($1::text[]) AND s.sku = u.sku AND (s.revision = u.revision OR $9)
