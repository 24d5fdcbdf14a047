-- How far a move is. $1 to $3: phase, cursor and whether it is done; $4: which; $5 and $6: how far it was.
UPDATE moves SET phase = $1, last = $2, is_done = $3 WHERE token = $4 AND phase = $5 AND last = $6 AND NOT is_done
