-- A partition as it is now; the last value names it.
UPDATE hot_partitions
SET epoch = ?, is_auditing = ?, since = ?, server = ?, drained_epoch = ?, drained_seq = ?
WHERE part = ?
