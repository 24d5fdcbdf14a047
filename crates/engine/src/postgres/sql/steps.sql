-- Steps whose effects are not done, oldest first. $1: how many.
SELECT token, effects FROM hot_steps WHERE effects <> '' ORDER BY at, token LIMIT $1
