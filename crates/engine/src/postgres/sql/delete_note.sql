-- Removes a note, if it is as it was read. $1: name, $2: version.
DELETE FROM notes WHERE name = $1 AND version = $2
