-- Claims that are there no more.
DELETE FROM claims c USING unnest($1::text[], $2::bigint[], $3::uuid[]) AS u (sku, expires_at, hold)
WHERE c.sku = u.sku AND c.expires_at = u.expires_at AND c.hold = u.hold
