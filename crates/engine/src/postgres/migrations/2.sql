-- Version 2: what the engine that decides in Redis keeps here. The tables stay empty where it is not used.

-- How far the log of each partition of the hot store is written down here, and which server it was last audited on.
-- Written by every batch of its partition, so a page keeps room for newer versions of its rows.
CREATE TABLE hot_partitions (
    part          integer PRIMARY KEY,
    epoch         bigint NOT NULL,
    is_auditing   boolean NOT NULL,
    since         bigint NOT NULL,
    server        text NOT NULL,
    drained_epoch bigint NOT NULL,
    drained_seq   bigint NOT NULL
) WITH (fillfactor = 10);

-- What the hot store still has to be told. Empty effects: the step was given up and must never commit.
CREATE TABLE hot_steps (
    token   text COLLATE "C" PRIMARY KEY,
    effects text NOT NULL,
    at      bigint NOT NULL
);
CREATE INDEX hot_steps_open ON hot_steps (at, token) WHERE effects <> '';
CREATE INDEX hot_steps_given_up ON hot_steps (at) WHERE effects = '';

-- Facts that could not be written down, for a person to look at.
CREATE TABLE hot_parked (
    n     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    part  integer NOT NULL,
    epoch bigint NOT NULL,
    seq   bigint NOT NULL,
    fact  text NOT NULL,
    why   text NOT NULL,
    at    bigint NOT NULL
);
