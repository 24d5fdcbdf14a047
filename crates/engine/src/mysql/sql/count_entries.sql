-- Numbers for entries, the last of which the client reads back: how many, how many more holds, SKUs, the moment,
-- whether they are a move's: the row is left alone if it must not be.
UPDATE totals SET seq = LAST_INSERT_ID(seq + ?), holds = holds + ?, skus = skus + ?, last_time = GREATEST(last_time, ?)
WHERE is_moving = ?
