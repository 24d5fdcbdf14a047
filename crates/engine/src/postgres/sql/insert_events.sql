-- Events seen. $1: providers, $2: event ids.
INSERT INTO events (provider, event_id) SELECT * FROM unnest($1::text[], $2::text[])
