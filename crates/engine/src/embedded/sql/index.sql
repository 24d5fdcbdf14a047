-- Which ledger entries concern a SKU or an order: derived from the ledger, in a file of its own, rebuilt when missing.
-- `key` is a hash, so an entry found here must be checked against the ledger. `indexed_to`: the last entry covered.
CREATE TABLE IF NOT EXISTS ledger_index (
    key INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (key, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS progress (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    indexed_to INTEGER NOT NULL
) STRICT;

INSERT OR IGNORE INTO progress VALUES (1, 0);
