-- How many facts could not be written down.
SELECT count(*) FROM hot_parked
