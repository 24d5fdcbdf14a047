-- Events seen.
INSERT INTO events (provider, event_id) VALUES /*row*/(?, ?)/*end*/
