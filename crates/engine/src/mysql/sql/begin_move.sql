-- A move begins: which, from where, the first phase.
INSERT INTO moves (id, token, source, phase, last, is_done) VALUES (1, ?, ?, ?, '', FALSE)
