-- The last entry.
SELECT seq FROM totals
