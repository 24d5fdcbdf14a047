-- How many rows there are of each kind.
SELECT (SELECT count(*) FROM stock), (SELECT count(*) FROM holds WHERE status = 'held'), (SELECT count(*) FROM holds),
    (SELECT count(*) FROM orders), (SELECT count(*) FROM payments), (SELECT count(*) FROM jobs),
    (SELECT count(*) FROM events), (SELECT count(*) FROM receipts), (SELECT count(*) FROM purchases),
    (SELECT count(*) FROM ledger), (SELECT count(*) FROM notes)
