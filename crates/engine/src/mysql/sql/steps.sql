-- Steps whose effects are not done, oldest first: how many.
SELECT token, effects FROM hot_steps WHERE is_open = 1 ORDER BY at, token LIMIT ?
