-- Lines of holds by id.
SELECT lines_text FROM holds WHERE id IN (?)
