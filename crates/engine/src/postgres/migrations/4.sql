-- Version 4: what is known of payments and of what is owed at the provider, and notes.

ALTER TABLE payments ADD COLUMN capture_failed boolean NOT NULL DEFAULT false,
    ADD COLUMN refund_failed boolean NOT NULL DEFAULT false,
    ADD COLUMN disputed boolean NOT NULL DEFAULT false;

-- Nobody asks the provider before `next_at`. `reference`: the provider's id of what it did.
ALTER TABLE jobs ADD COLUMN attempts bigint NOT NULL DEFAULT 0,
    ADD COLUMN next_at bigint NOT NULL DEFAULT 0,
    ADD COLUMN reference text,
    ADD COLUMN error text;
CREATE INDEX jobs_open ON jobs (provider, next_at) WHERE state IN ('due', 'requested');

-- Texts that the service keeps: how far each sink has read the ledger, for one.
CREATE TABLE notes (
    name    text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    text    text NOT NULL
);
