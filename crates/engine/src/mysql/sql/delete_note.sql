-- Removes a note, if it is as it was read: name, version.
DELETE FROM notes WHERE name = ? AND version = ?
