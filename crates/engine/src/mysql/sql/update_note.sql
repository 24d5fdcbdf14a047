-- A note, if it is as it was read: text, name, version.
UPDATE notes SET version = version + 1, text = ? WHERE name = ? AND version = ?
