-- From now on only a move may write entries, or everybody else: whether it is the move.
UPDATE totals SET is_moving = ? WHERE is_moving <> ?
