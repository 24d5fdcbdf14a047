-- Version 4: what is known of payments and of what is owed at the provider, and notes. MySQL knows no ADD COLUMN IF NOT
-- EXISTS, and a crash may have come after the columns and before their version was noted.
-- Nobody asks the provider before `next_at`. `reference`: the provider's id of what it did.
SET @add_payments = (SELECT IF(COUNT(*) = 0, 'ALTER TABLE payments ADD COLUMN capture_failed BOOLEAN NOT NULL DEFAULT FALSE,
        ADD COLUMN refund_failed BOOLEAN NOT NULL DEFAULT FALSE, ADD COLUMN disputed BOOLEAN NOT NULL DEFAULT FALSE', 'DO 0')
    FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'payments' AND column_name = 'disputed');

PREPARE add_payments FROM @add_payments;

EXECUTE add_payments;

DEALLOCATE PREPARE add_payments;

SET @add_jobs = (SELECT IF(COUNT(*) = 0, 'ALTER TABLE jobs ADD COLUMN attempts BIGINT NOT NULL DEFAULT 0,
        ADD COLUMN next_at BIGINT NOT NULL DEFAULT 0, ADD COLUMN reference VARBINARY(255),
        ADD COLUMN error TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, ADD KEY jobs_open (provider, state, next_at)', 'DO 0')
    FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'jobs' AND column_name = 'error');

PREPARE add_jobs FROM @add_jobs;

EXECUTE add_jobs;

DEALLOCATE PREPARE add_jobs;

-- Texts that the service keeps: how far each sink has read the ledger, for one.
CREATE TABLE IF NOT EXISTS notes (
    name    VARBINARY(255) NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL,
    text    MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
) ENGINE = InnoDB;
