-- A new note, unless there is one: name, text.
INSERT IGNORE INTO notes (name, version, text) VALUES (?, 1, ?)
