-- Partitions as they are now.
UPDATE hot_partitions p
SET epoch = u.epoch, is_auditing = u.is_auditing, since = u.since, server = u.server,
    drained_epoch = u.drained_epoch, drained_seq = u.drained_seq
FROM unnest($1::integer[], $2::bigint[], $3::boolean[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[])
    AS u (part, epoch, is_auditing, since, server, drained_epoch, drained_seq)
WHERE p.part = ANY ($1::integer[]) AND p.part = u.part
