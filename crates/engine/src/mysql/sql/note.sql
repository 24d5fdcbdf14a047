-- A note, by name.
SELECT name, version, text FROM notes WHERE name = ?
