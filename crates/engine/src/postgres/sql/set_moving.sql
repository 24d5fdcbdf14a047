-- From now on only a move may write entries, or everybody else. $1: whether it is the move.
UPDATE totals SET is_moving = $1 WHERE is_moving <> $1
