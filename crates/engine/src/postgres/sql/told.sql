-- The database's clock in milliseconds, and the totals.
SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint, last_time, holds, skus, is_moving FROM totals
