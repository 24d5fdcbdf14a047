-- A step: token, effects, when. Waits for whoever is noting the same; a key refuses the second.
INSERT INTO hot_steps (token, effects, at) VALUES (?, ?, ?)
