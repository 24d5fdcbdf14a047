-- Rows of partitions, where they are missing: nothing is written down of them.
INSERT IGNORE INTO hot_partitions (part, epoch, is_auditing, since, server, drained_epoch, drained_seq)
VALUES /*row*/(?, 0, FALSE, 0, '', 0, 0)/*end*/
