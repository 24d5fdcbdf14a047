-- A note, if it is as it was read. $1: name, $2: version, $3: text.
UPDATE notes SET version = version + 1, text = $3 WHERE name = $1 AND version = $2
