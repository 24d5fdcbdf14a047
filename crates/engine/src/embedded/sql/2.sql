-- Version 2: what is known of payments and of what is owed at the provider, and notes.

ALTER TABLE payments ADD COLUMN capture_failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE payments ADD COLUMN refund_failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE payments ADD COLUMN disputed INTEGER NOT NULL DEFAULT 0;

-- Nobody asks the provider before `next_at`. `reference`: the provider's id of what it did.
ALTER TABLE jobs ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN next_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN reference TEXT;
ALTER TABLE jobs ADD COLUMN error TEXT;
CREATE INDEX jobs_open ON jobs (provider, next_at) WHERE state = 'due' OR state = 'requested';

-- Texts that the service keeps: how far each sink has read the ledger, for one.
CREATE TABLE notes (
    name    TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    text    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
