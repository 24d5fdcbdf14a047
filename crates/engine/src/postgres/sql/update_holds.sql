-- Holds as they are now. $8: the status that they had.
UPDATE holds h
SET status = u.status, lines = u.lines, amount = u.amount, expires_at = u.expires_at, late = u.late,
    payment_ref = u.payment_ref
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::boolean[], $7::text[], $8::text[])
    AS u (id, status, lines, amount, expires_at, late, payment_ref, was)
WHERE h.id = ANY ($1::uuid[]) AND h.id = u.id AND h.status = u.was
