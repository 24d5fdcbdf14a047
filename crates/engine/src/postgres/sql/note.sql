-- A note. $1: its name.
SELECT name, version, text FROM notes WHERE name = $1
