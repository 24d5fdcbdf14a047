-- Holds with status held, by id: those that have claims. The one before, how many.
SELECT h.id, h.order_id, h.status, h.lines_text, h.customer_id, h.amount, h.currency, h.created_at, h.expires_at, h.late, h.payment_ref, h.metadata
FROM (SELECT DISTINCT hold FROM claims FORCE INDEX (PRIMARY) WHERE hold > ? ORDER BY hold LIMIT ?) AS c
STRAIGHT_JOIN holds h ON h.id = c.hold ORDER BY h.id
