-- A move begins. $1: which, $2: from where, $3: the first phase.
INSERT INTO moves (id, token, source, phase, last, is_done) VALUES (1, $1, $2, $3, '', false)
