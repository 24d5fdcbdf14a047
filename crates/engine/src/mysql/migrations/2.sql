-- Version 2: what the engine that decides in Redis keeps here. The tables stay empty where it is not used.

-- How far the log of each partition of the hot store is written down here, and which server it was last audited on.
CREATE TABLE IF NOT EXISTS hot_partitions (
    part          INT NOT NULL PRIMARY KEY,
    epoch         BIGINT NOT NULL,
    is_auditing   BOOLEAN NOT NULL,
    since         BIGINT NOT NULL,
    server        TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    drained_epoch BIGINT NOT NULL,
    drained_seq   BIGINT NOT NULL
) ENGINE = InnoDB;

-- What the hot store still has to be told. Empty effects: the step was given up and must never commit.
CREATE TABLE IF NOT EXISTS hot_steps (
    token   VARBINARY(255) NOT NULL PRIMARY KEY,
    effects MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    at      BIGINT NOT NULL,
    is_open BOOLEAN AS (effects <> '') STORED,
    KEY hot_steps_open (is_open, at, token)
) ENGINE = InnoDB;

-- Facts that could not be written down, for a person to look at.
CREATE TABLE IF NOT EXISTS hot_parked (
    n     BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    part  INT NOT NULL,
    epoch BIGINT NOT NULL,
    seq   BIGINT NOT NULL,
    fact  MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    why   TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    at    BIGINT NOT NULL
) ENGINE = InnoDB;
