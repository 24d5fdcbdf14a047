-- What holds claimed until now. $1: holds.
DELETE FROM claims WHERE hold = ANY ($1::uuid[])
