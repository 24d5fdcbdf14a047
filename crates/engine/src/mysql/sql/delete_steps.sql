-- Steps whose effects are done; one that was given up is kept.
DELETE FROM hot_steps WHERE token IN (?) AND effects <> ''
