-- Notes by name. $1: after this name, $2: before this one, $3: how many.
SELECT name, version, text FROM notes WHERE name > $1 AND name < $2 ORDER BY name LIMIT $3
