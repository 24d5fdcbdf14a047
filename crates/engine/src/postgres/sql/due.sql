-- Lapsed holds on any SKU. $1: now, $2: known ones, $3: how many rows.
SELECT hold FROM claims WHERE expires_at <= $1 AND hold <> ALL ($2::uuid[]) ORDER BY expires_at, sku, hold LIMIT $3
