-- The effects of a step. $1: its token.
SELECT effects FROM hot_steps WHERE token = $1
