-- A new note, unless there is one. $1: name, $2: text.
INSERT INTO notes (name, version, text) VALUES ($1, 1, $2) ON CONFLICT (name) DO NOTHING
