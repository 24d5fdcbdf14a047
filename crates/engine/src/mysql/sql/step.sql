-- The effects of a step by its token.
SELECT effects FROM hot_steps WHERE token = ?
