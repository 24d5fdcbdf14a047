-- The store in MySQL and MariaDB, version 1. Times are milliseconds since the Unix epoch by the database's clock, money
-- is in minor units. Identifiers are bytes (VARBINARY), so that none is folded. Documented in docs/engines.md.

CREATE TABLE IF NOT EXISTS stock (
    sku                VARBINARY(128) NOT NULL PRIMARY KEY,
    available          BIGINT NOT NULL,
    held               BIGINT NOT NULL,
    sold               BIGINT NOT NULL,
    limit_per_customer BIGINT,
    version            BIGINT NOT NULL,
    -- Counts every writing of the row.
    revision           BIGINT NOT NULL,
    -- Units of `available` that were put into rows of `units`, and those whose row is gone are held.
    carved             BIGINT NOT NULL DEFAULT 0,
    CONSTRAINT stock_counters CHECK (available >= 0 AND held >= 0 AND sold >= 0),
    CONSTRAINT stock_carved CHECK (carved >= 0 AND carved <= available)
) ENGINE = InnoDB;

-- One row per unit that can be claimed without waiting for its SKU's row: strategy skip_locked only.
CREATE TABLE IF NOT EXISTS units (
    sku VARBINARY(128) NOT NULL,
    n   BIGINT NOT NULL,
    PRIMARY KEY (sku, n)
) ENGINE = InnoDB;

-- `lines_text` has one line of text per SKU: quantity, a space, the SKU.
CREATE TABLE IF NOT EXISTS holds (
    id               BINARY(16) NOT NULL PRIMARY KEY,
    order_id         VARBINARY(255) NOT NULL,
    status           VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    lines_text       TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    customer_id      VARBINARY(255),
    amount           BIGINT,
    currency         CHAR(3) CHARACTER SET ascii COLLATE ascii_bin,
    created_at       BIGINT NOT NULL,
    expires_at       BIGINT NOT NULL,
    late             BOOLEAN NOT NULL,
    payment_ref      TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    metadata         TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    current_order    VARBINARY(255) AS (IF(status IN ('held', 'confirmed'), order_id, NULL)) STORED,
    holding_customer VARBINARY(255) AS (IF(status = 'held', customer_id, NULL)) STORED,
    CONSTRAINT holds_status CHECK (status IN ('held', 'confirmed', 'released', 'expired')),
    -- The last line of defence: an order has at most one hold that claims units or became the order.
    UNIQUE KEY holds_current (current_order),
    KEY holds_order (order_id),
    KEY holds_customer (holding_customer)
) ENGINE = InnoDB;

-- What holds with status held claim, one row a line: found by SKU and deadline, or by deadline alone.
CREATE TABLE IF NOT EXISTS claims (
    hold       BINARY(16) NOT NULL,
    sku        VARBINARY(128) NOT NULL,
    expires_at BIGINT NOT NULL,
    quantity   BIGINT NOT NULL,
    PRIMARY KEY (hold, sku),
    KEY claims_sku (sku, expires_at, hold, quantity),
    KEY claims_due (expires_at, sku, hold),
    CONSTRAINT claims_quantity CHECK (quantity > 0)
) ENGINE = InnoDB;

-- `lines_text` has one line of text per SKU: quantity bought, quantity returned, the SKU, separated by spaces.
CREATE TABLE IF NOT EXISTS orders (
    order_id         VARBINARY(255) NOT NULL PRIMARY KEY,
    hold             BINARY(16) NOT NULL,
    status           VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    lines_text       TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    late             BOOLEAN NOT NULL,
    customer_id      VARBINARY(255),
    amount           BIGINT,
    currency         CHAR(3) CHARACTER SET ascii COLLATE ascii_bin,
    payment_provider VARBINARY(255),
    payment_id       VARBINARY(255),
    confirmed_at     BIGINT NOT NULL,
    CONSTRAINT orders_status CHECK (status IN ('confirmed', 'refunded', 'capture_failed', 'returned')),
    UNIQUE KEY orders_hold (hold),
    -- A payment pays for one order.
    UNIQUE KEY orders_payment (payment_provider, payment_id),
    CONSTRAINT orders_of_holds FOREIGN KEY (hold) REFERENCES holds (id)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS ledger (
    seq       BIGINT NOT NULL PRIMARY KEY,
    at        BIGINT NOT NULL,
    kind      VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    sku       VARBINARY(128),
    available BIGINT NOT NULL,
    held      BIGINT NOT NULL,
    sold      BIGINT NOT NULL,
    hold      BINARY(16),
    order_id  VARBINARY(255),
    reason    TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    KEY ledger_sku (sku, seq),
    KEY ledger_order (order_id, seq)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS purchases (
    customer_id VARBINARY(255) NOT NULL,
    sku         VARBINARY(128) NOT NULL,
    units       BIGINT NOT NULL,
    PRIMARY KEY (customer_id, sku),
    CONSTRAINT purchases_units CHECK (units >= 0)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS payments (
    n           BIGINT NOT NULL AUTO_INCREMENT,
    provider    VARBINARY(255) NOT NULL,
    payment_id  VARBINARY(255) NOT NULL,
    order_id    VARBINARY(255),
    hold        BINARY(16),
    amount      BIGINT,
    currency    CHAR(3) CHARACTER SET ascii COLLATE ascii_bin,
    email       TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    authorized  BOOLEAN NOT NULL,
    captured    BOOLEAN NOT NULL,
    failed      BOOLEAN NOT NULL,
    canceled    BOOLEAN NOT NULL,
    refunded    BIGINT NOT NULL,
    status      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    received_at BIGINT NOT NULL,
    PRIMARY KEY (provider, payment_id),
    UNIQUE KEY payments_n (n),
    KEY payments_order (order_id, n),
    KEY payments_status (status, received_at)
) ENGINE = InnoDB;

-- What is owed at the provider: at most one reversal and one capture a payment.
CREATE TABLE IF NOT EXISTS jobs (
    n               BIGINT NOT NULL AUTO_INCREMENT,
    provider        VARBINARY(255) NOT NULL,
    payment_id      VARBINARY(255) NOT NULL,
    is_capture      BOOLEAN NOT NULL,
    kind            VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    reason          VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    state           VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    idempotency_key VARBINARY(600) NOT NULL,
    amount          BIGINT,
    currency        CHAR(3) CHARACTER SET ascii COLLATE ascii_bin,
    created_at      BIGINT NOT NULL,
    PRIMARY KEY (provider, payment_id, is_capture),
    UNIQUE KEY jobs_n (n),
    UNIQUE KEY jobs_key (idempotency_key)
) ENGINE = InnoDB;

-- An event is seen once.
CREATE TABLE IF NOT EXISTS events (
    provider VARBINARY(255) NOT NULL,
    event_id VARBINARY(255) NOT NULL,
    PRIMARY KEY (provider, event_id)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS receipts (
    used_key VARBINARY(255) NOT NULL PRIMARY KEY,
    used_for TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
) ENGINE = InnoDB;

-- One row. `seq`: the last ledger entry; whoever writes entries locks this row last, so entries appear in order.
CREATE TABLE IF NOT EXISTS totals (
    id        INT NOT NULL PRIMARY KEY,
    seq       BIGINT NOT NULL,
    holds     BIGINT NOT NULL,
    skus      BIGINT NOT NULL,
    last_time BIGINT NOT NULL,
    -- A move into this database has begun and is not done: nobody else writes.
    is_moving BOOLEAN NOT NULL DEFAULT FALSE,
    CONSTRAINT totals_one_row CHECK (id = 1)
) ENGINE = InnoDB;

INSERT IGNORE INTO totals VALUES (1, 0, 0, 0, 0, FALSE);

-- At most one row: how far `holdfast migrate` is, or that it is done. `last`: the cursor of the next page.
CREATE TABLE IF NOT EXISTS moves (
    id      INT NOT NULL PRIMARY KEY,
    token   BIGINT NOT NULL,
    source  TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    phase   VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    last    VARBINARY(600) NOT NULL,
    is_done BOOLEAN NOT NULL,
    CONSTRAINT moves_one_row CHECK (id = 1)
) ENGINE = InnoDB;
