-- Which events were seen. $1: providers, $2: event ids, pairwise.
SELECT e.provider, e.event_id
FROM unnest($1::text[], $2::text[]) AS asked (provider, event_id)
JOIN events e ON e.provider = asked.provider AND e.event_id = asked.event_id
