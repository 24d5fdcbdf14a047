-- Holds that became orders, of which nothing else has changed: late or not, ids, the status that they had.
UPDATE holds SET status = 'confirmed', late = ? WHERE id IN (?) AND status = ?
