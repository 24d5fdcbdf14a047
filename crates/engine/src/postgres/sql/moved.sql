-- How far a move into this database is.
SELECT token, source, phase, last, is_done FROM moves
