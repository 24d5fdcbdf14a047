-- Which events were seen; others may be among what is found.
SELECT provider, event_id FROM events WHERE provider IN (?) AND event_id IN (?)
