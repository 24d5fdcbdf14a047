-- Which events were seen. $1: providers, $2: event ids; others may be among what is found.
SELECT provider, event_id FROM events WHERE provider = ANY ($1::text[]) AND event_id = ANY ($2::text[])
