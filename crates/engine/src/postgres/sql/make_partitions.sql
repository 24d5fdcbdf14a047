-- The rows of partitions 0 to $1 that are missing: nothing is written down of them.
INSERT INTO hot_partitions (part, epoch, is_auditing, since, server, drained_epoch, drained_seq)
SELECT n, 0, false, 0, '', 0, 0 FROM generate_series(0, $1::integer) AS n
ON CONFLICT (part) DO NOTHING
