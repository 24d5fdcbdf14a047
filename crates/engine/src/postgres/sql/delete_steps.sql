-- Steps whose effects are done; one that was given up is kept. $1: tokens.
DELETE FROM hot_steps WHERE token = ANY ($1::text[]) AND effects <> ''
