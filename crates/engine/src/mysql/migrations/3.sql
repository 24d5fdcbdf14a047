-- Version 3: the highest fence that a SKU's row has been written under, for strategy redlock. 0: under none. MySQL knows
-- no ADD COLUMN IF NOT EXISTS, and a crash may have come after the column and before its version was noted.
SET @add_fence = (SELECT IF(COUNT(*) = 0, 'ALTER TABLE stock ADD COLUMN fence BIGINT NOT NULL DEFAULT 0', 'DO 0')
    FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'stock' AND column_name = 'fence');

PREPARE add_fence FROM @add_fence;

EXECUTE add_fence;

DEALLOCATE PREPARE add_fence;
