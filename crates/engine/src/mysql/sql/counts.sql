-- How many rows there are of each kind.
SELECT (SELECT COUNT(*) FROM stock), (SELECT COUNT(*) FROM holds WHERE status = 'held'), (SELECT COUNT(*) FROM holds),
    (SELECT COUNT(*) FROM orders), (SELECT COUNT(*) FROM payments), (SELECT COUNT(*) FROM jobs),
    (SELECT COUNT(*) FROM events), (SELECT COUNT(*) FROM receipts), (SELECT COUNT(*) FROM purchases),
    (SELECT COUNT(*) FROM ledger), (SELECT COUNT(*) FROM notes)
