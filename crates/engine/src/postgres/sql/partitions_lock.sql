-- How far partitions are written down, locked in order. $1: partitions.
SELECT part::bigint, epoch, is_auditing, since, server, drained_epoch, drained_seq
FROM hot_partitions WHERE part = ANY ($1::integer[]) ORDER BY part FOR UPDATE
