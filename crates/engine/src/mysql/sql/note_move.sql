-- How far a move is: phase, cursor and whether it is done; which; how far it was.
UPDATE moves SET phase = ?, last = ?, is_done = ? WHERE token = ? AND phase = ? AND last = ? AND NOT is_done
