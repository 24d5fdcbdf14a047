-- The database's clock in milliseconds, and the totals.
SELECT CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED), last_time, holds, skus, is_moving FROM totals
