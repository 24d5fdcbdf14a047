-- Holds that claim nothing any more: their status now, ids.
UPDATE holds SET status = ? WHERE id IN (?) AND status = 'held'
