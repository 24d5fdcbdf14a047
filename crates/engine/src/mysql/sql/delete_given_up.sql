-- Steps that were given up before this moment.
DELETE FROM hot_steps WHERE is_open = 0 AND at < ?
