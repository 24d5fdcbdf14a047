-- Facts that could not be written down. $1 to $5: a column each, $6: when.
INSERT INTO hot_parked (part, epoch, seq, fact, why, at)
SELECT u.*, $6::bigint FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::text[], $5::text[]) AS u
