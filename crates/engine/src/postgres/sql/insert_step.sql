-- A step, unless its token is noted already; waits for whoever is noting it. $1: token, $2: effects, $3: when.
INSERT INTO hot_steps (token, effects, at) VALUES ($1, $2, $3) ON CONFLICT (token) DO NOTHING
