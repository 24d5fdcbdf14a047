-- How far partitions are written down.
SELECT part, epoch, is_auditing, since, server, drained_epoch, drained_seq
FROM hot_partitions WHERE part IN (?) ORDER BY part
