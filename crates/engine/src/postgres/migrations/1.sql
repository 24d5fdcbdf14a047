-- The store in PostgreSQL, version 1. Times are milliseconds since the Unix epoch by the database's clock, money is in
-- minor units. Identifiers are compared byte by byte (COLLATE "C"). Documented for its readers in docs/engines.md.

CREATE TABLE stock (
    sku                text COLLATE "C" PRIMARY KEY,
    available          bigint NOT NULL,
    held               bigint NOT NULL,
    sold               bigint NOT NULL,
    limit_per_customer bigint,
    version            bigint NOT NULL,
    -- Counts every writing of the row.
    revision           bigint NOT NULL,
    -- Units of `available` that were put into rows of `units`; those whose row is gone are held.
    carved             bigint NOT NULL DEFAULT 0,
    CONSTRAINT stock_counters CHECK (available >= 0 AND held >= 0 AND sold >= 0),
    CONSTRAINT stock_carved CHECK (carved >= 0 AND carved <= available)
) WITH (fillfactor = 50);

-- One row per unit that can be claimed without waiting for its SKU's row: strategy skip_locked only.
CREATE TABLE units (
    sku text COLLATE "C" NOT NULL,
    n   bigint NOT NULL,
    PRIMARY KEY (sku, n)
);

-- `lines` has one line of text per SKU: quantity, a space, the SKU.
CREATE TABLE holds (
    id          uuid PRIMARY KEY,
    order_id    text COLLATE "C" NOT NULL,
    status      text NOT NULL,
    lines       text NOT NULL,
    customer_id text COLLATE "C",
    amount      bigint,
    currency    text,
    created_at  bigint NOT NULL,
    expires_at  bigint NOT NULL,
    late        boolean NOT NULL,
    payment_ref text,
    metadata    text,
    CONSTRAINT holds_status CHECK (status IN ('held', 'confirmed', 'released', 'expired'))
) WITH (fillfactor = 90);

-- The last line of defence: an order has at most one hold that claims units or became the order.
CREATE UNIQUE INDEX holds_current ON holds (order_id) WHERE status IN ('held', 'confirmed');
CREATE INDEX holds_ended ON holds (order_id) WHERE status IN ('released', 'expired');
CREATE INDEX holds_customer ON holds (customer_id) WHERE status = 'held' AND customer_id IS NOT NULL;

-- What holds with status held claim, one row a line: found by SKU and deadline, or by deadline alone.
CREATE TABLE claims (
    sku        text COLLATE "C" NOT NULL,
    expires_at bigint NOT NULL,
    hold       uuid NOT NULL,
    quantity   bigint NOT NULL,
    PRIMARY KEY (hold, sku),
    CONSTRAINT claims_quantity CHECK (quantity > 0)
);
CREATE INDEX claims_sku ON claims (sku, expires_at, hold);
CREATE INDEX claims_due ON claims (expires_at, sku, hold);

-- `lines` has one line of text per SKU: quantity bought, quantity returned, the SKU, separated by spaces.
CREATE TABLE orders (
    order_id         text COLLATE "C" PRIMARY KEY,
    hold             uuid NOT NULL UNIQUE REFERENCES holds (id),
    status           text NOT NULL,
    lines            text NOT NULL,
    late             boolean NOT NULL,
    customer_id      text COLLATE "C",
    amount           bigint,
    currency         text,
    payment_provider text COLLATE "C",
    payment_id       text COLLATE "C",
    confirmed_at     bigint NOT NULL,
    CONSTRAINT orders_status CHECK (status IN ('confirmed', 'refunded', 'capture_failed', 'returned')),
    -- A payment pays for one order.
    CONSTRAINT orders_payment UNIQUE (payment_provider, payment_id)
);

CREATE TABLE ledger (
    seq       bigint PRIMARY KEY,
    at        bigint NOT NULL,
    kind      text NOT NULL,
    sku       text COLLATE "C",
    available bigint NOT NULL,
    held      bigint NOT NULL,
    sold      bigint NOT NULL,
    hold      uuid,
    order_id  text COLLATE "C",
    reason    text
);
CREATE INDEX ledger_sku ON ledger (sku, seq);
CREATE INDEX ledger_order ON ledger (order_id, seq);

CREATE TABLE purchases (
    customer_id text COLLATE "C" NOT NULL,
    sku         text COLLATE "C" NOT NULL,
    units       bigint NOT NULL,
    PRIMARY KEY (customer_id, sku),
    CONSTRAINT purchases_units CHECK (units >= 0)
);

CREATE TABLE payments (
    n           bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    provider    text COLLATE "C" NOT NULL,
    payment_id  text COLLATE "C" NOT NULL,
    order_id    text COLLATE "C",
    hold        uuid,
    amount      bigint,
    currency    text,
    email       text,
    authorized  boolean NOT NULL,
    captured    boolean NOT NULL,
    failed      boolean NOT NULL,
    canceled    boolean NOT NULL,
    refunded    bigint NOT NULL,
    status      text NOT NULL,
    received_at bigint NOT NULL,
    PRIMARY KEY (provider, payment_id)
);
CREATE INDEX payments_waiting ON payments (order_id, n) WHERE status IN ('unmatched', 'needs_attention');
CREATE INDEX payments_unmatched ON payments (received_at) WHERE status = 'unmatched';

-- What is owed at the provider: at most one reversal and one capture a payment.
CREATE TABLE jobs (
    n               bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    provider        text COLLATE "C" NOT NULL,
    payment_id      text COLLATE "C" NOT NULL,
    is_capture      boolean NOT NULL,
    kind            text NOT NULL,
    reason          text NOT NULL,
    state           text NOT NULL,
    idempotency_key text COLLATE "C" NOT NULL UNIQUE,
    amount          bigint,
    currency        text,
    created_at      bigint NOT NULL,
    PRIMARY KEY (provider, payment_id, is_capture)
);

-- An event is seen once.
CREATE TABLE events (
    provider text COLLATE "C" NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (provider, event_id)
);

CREATE TABLE receipts (
    key      text COLLATE "C" PRIMARY KEY,
    used_for text NOT NULL
);

-- One row. `seq`: the last ledger entry; whoever writes entries locks this row last, so entries appear in order.
CREATE TABLE totals (
    id        integer PRIMARY KEY,
    seq       bigint NOT NULL,
    holds     bigint NOT NULL,
    skus      bigint NOT NULL,
    last_time bigint NOT NULL,
    -- A move into this database has begun and is not done: nobody else writes.
    is_moving boolean NOT NULL DEFAULT false,
    CONSTRAINT totals_one_row CHECK (id = 1)
) WITH (fillfactor = 10);
INSERT INTO totals VALUES (1, 0, 0, 0, 0);

-- At most one row: how far `holdfast migrate` is, or that it is done. `last`: the cursor of the next page.
CREATE TABLE moves (
    id      integer PRIMARY KEY,
    token   bigint NOT NULL,
    source  text NOT NULL,
    phase   text NOT NULL,
    last    text COLLATE "C" NOT NULL,
    is_done boolean NOT NULL,
    CONSTRAINT moves_one_row CHECK (id = 1)
);
