-- Facts that could not be written down.
INSERT INTO hot_parked (part, epoch, seq, fact, why, at) VALUES /*row*/(?, ?, ?, ?, ?, ?)/*end*/
