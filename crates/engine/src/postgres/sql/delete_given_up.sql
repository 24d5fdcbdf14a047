-- Steps that were given up before $1.
DELETE FROM hot_steps WHERE effects = '' AND at < $1
