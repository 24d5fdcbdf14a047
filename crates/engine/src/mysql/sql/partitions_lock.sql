-- How far partitions are written down, locked in order. A small table would be read whole, and waited for whole.
SELECT part, epoch, is_auditing, since, server, drained_epoch, drained_seq
FROM hot_partitions FORCE INDEX (PRIMARY) WHERE part IN (?) ORDER BY part FOR UPDATE
