-- How many facts could not be written down.
SELECT COUNT(*) FROM hot_parked
