-- New SKUs.
INSERT INTO stock (sku, available, held, sold, limit_per_customer, version, fence, revision)
SELECT u.*, 0 FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
    $7::bigint[]) AS u
