-- The first lapsed holds on a SKU, locked. $1: SKU, $2: now, $3: known ones, $4: how many.
SELECT h.id, h.order_id, h.status, h.lines, h.customer_id, h.amount, h.currency, h.created_at, h.expires_at, h.late, h.payment_ref, h.metadata
FROM (
    SELECT hold FROM claims WHERE sku = $1 AND expires_at <= $2 AND hold <> ALL ($3::uuid[])
    ORDER BY expires_at, hold LIMIT $4
) AS first
JOIN holds h ON h.id = first.hold
ORDER BY h.id FOR UPDATE OF h
