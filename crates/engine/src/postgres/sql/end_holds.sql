-- Holds that claim nothing any more. $1: ids, $2: their status now.
UPDATE holds h SET status = u.status
FROM unnest($1::uuid[], $2::text[]) AS u (id, status)
WHERE h.id = ANY ($1::uuid[]) AND h.id = u.id AND h.status = 'held'
