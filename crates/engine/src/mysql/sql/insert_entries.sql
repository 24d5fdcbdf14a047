-- Entries.
INSERT INTO ledger (seq, at, kind, sku, available, held, sold, hold, order_id, reason)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*end*/
