-- What holds claimed until now.
DELETE FROM claims WHERE hold IN (?)
