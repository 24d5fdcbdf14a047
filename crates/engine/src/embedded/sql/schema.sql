-- The embedded store, version 1; what came later is in the files beside this one. Times are milliseconds since the Unix epoch, money is in minor units.
-- Documented for its readers in docs/embedded.md: `sqlite3 holdfast.db 'select * from ledger'` is a feature.

CREATE TABLE stock (
    sku                TEXT PRIMARY KEY,
    available          INTEGER NOT NULL CHECK (available >= 0),
    held               INTEGER NOT NULL CHECK (held >= 0),
    sold               INTEGER NOT NULL CHECK (sold >= 0),
    limit_per_customer INTEGER,
    version            INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- `n` is the time and count inside the id, so holds lie in the order in which they were made and need no index by id.
-- `lines` has one line of text per SKU: quantity, a space, the SKU.
-- Checks are spelled with OR: IN would build a table of its own for every row that is written.
CREATE TABLE holds (
    n           INTEGER PRIMARY KEY,
    id          TEXT NOT NULL,
    order_id    TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status = 'held' OR status = 'confirmed' OR status = 'released' OR status = 'expired'),
    lines       TEXT NOT NULL,
    customer_id TEXT,
    amount      INTEGER,
    currency    TEXT,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    late        INTEGER NOT NULL,
    payment_ref TEXT,
    metadata    TEXT
) STRICT;

-- Holds that claim units are found in memory; only settled ones are looked up by order.
CREATE INDEX holds_lapsed ON holds (order_id) WHERE status <> 'held' AND status <> 'confirmed';
-- Also the last line of defence for "an order has at most one confirmed hold".
CREATE UNIQUE INDEX holds_confirmed ON holds (order_id) WHERE status = 'confirmed';

-- `lines` has one line of text per SKU: quantity bought, quantity returned, the SKU, separated by spaces.
CREATE TABLE orders (
    n                INTEGER PRIMARY KEY REFERENCES holds (n),
    order_id         TEXT NOT NULL,
    status           TEXT NOT NULL CHECK (status = 'confirmed' OR status = 'refunded' OR status = 'capture_failed' OR status = 'returned'),
    lines            TEXT NOT NULL,
    payment_provider TEXT,
    payment_id       TEXT,
    confirmed_at     INTEGER NOT NULL
) STRICT;

CREATE TABLE ledger (
    seq       INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    sku       TEXT,
    available INTEGER NOT NULL,
    held      INTEGER NOT NULL,
    sold      INTEGER NOT NULL,
    hold      TEXT,
    order_id  TEXT,
    reason    TEXT
) STRICT;

CREATE TABLE purchases (
    customer_id TEXT NOT NULL,
    sku         TEXT NOT NULL,
    units       INTEGER NOT NULL CHECK (units >= 0),
    PRIMARY KEY (customer_id, sku)
) STRICT, WITHOUT ROWID;

CREATE TABLE payments (
    n           INTEGER PRIMARY KEY,
    provider    TEXT NOT NULL,
    payment_id  TEXT NOT NULL,
    order_id    TEXT,
    hold        TEXT,
    amount      INTEGER,
    currency    TEXT,
    email       TEXT,
    authorized  INTEGER NOT NULL,
    captured    INTEGER NOT NULL,
    failed      INTEGER NOT NULL,
    canceled    INTEGER NOT NULL,
    refunded    INTEGER NOT NULL,
    status      TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    UNIQUE (provider, payment_id)
) STRICT;

CREATE INDEX payments_waiting ON payments (order_id) WHERE status IN ('unmatched', 'needs_attention');
CREATE INDEX payments_unmatched ON payments (received_at) WHERE status = 'unmatched';

-- What is owed at the provider: at most one reversal and one capture a payment.
CREATE TABLE jobs (
    n               INTEGER PRIMARY KEY,
    provider        TEXT NOT NULL,
    payment_id      TEXT NOT NULL,
    is_capture      INTEGER NOT NULL,
    kind            TEXT NOT NULL,
    reason          TEXT NOT NULL,
    state           TEXT NOT NULL,
    idempotency_key TEXT NOT NULL UNIQUE,
    amount          INTEGER,
    currency        TEXT,
    created_at      INTEGER NOT NULL,
    UNIQUE (provider, payment_id, is_capture)
) STRICT;

CREATE TABLE events (
    provider TEXT NOT NULL,
    event_id TEXT NOT NULL,
    PRIMARY KEY (provider, event_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE receipts (
    key      TEXT PRIMARY KEY,
    used_for TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- `low_water`: no hold below this `n` has status held. `moving`: a move into a database has begun, and which;
-- `moved`: it is done, and since when. With either, the store is not served any more.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta VALUES ('low_water', 0);
