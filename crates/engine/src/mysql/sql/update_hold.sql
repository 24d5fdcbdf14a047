-- A hold as it is now; the last value is the status that it had.
UPDATE holds SET status = ?, lines_text = ?, amount = ?, expires_at = ?, late = ?, payment_ref = ?
WHERE id = ? AND status = ?
