-- The first lapsed holds on a SKU, locked. $1: SKU, $2: now, $3: known ones, $4: how many.
SELECT h.id, h.order_id, h.status, h.lines, h.customer_id, h.amount, h.currency, h.created_at, h.expires_at, h.late, h.payment_ref, h.metadata
FROM holds h
WHERE h.id = ANY (ARRAY(
    SELECT hold FROM claims WHERE sku = $1 AND expires_at <= $2 AND hold <> ALL ($3::uuid[])
    ORDER BY expires_at, hold LIMIT $4
))
ORDER BY h.id FOR UPDATE
