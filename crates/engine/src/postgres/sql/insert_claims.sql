-- New claims.
INSERT INTO claims (sku, expires_at, hold, quantity)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::uuid[], $4::bigint[])
