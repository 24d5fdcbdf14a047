-- Lines of holds by id, and of the holds of orders. $1: holds, $2: orders.
SELECT lines FROM holds WHERE id = ANY ($1::uuid[])
UNION ALL
SELECT lines FROM holds WHERE order_id = ANY ($2::text[]) AND status IN ('held', 'confirmed')
UNION ALL
SELECT lines FROM holds WHERE order_id = ANY ($2::text[]) AND status IN ('released', 'expired')
