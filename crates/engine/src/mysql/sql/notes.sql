-- Notes by name: after this name, before this one, how many.
SELECT name, version, text FROM notes WHERE name > ? AND name < ? ORDER BY name LIMIT ?
