-- Version 3: the highest fence that a SKU's row has been written under, for strategy redlock. 0: under none.

ALTER TABLE stock ADD COLUMN fence bigint NOT NULL DEFAULT 0;
