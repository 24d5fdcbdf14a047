-- Lapsed holds on any SKU: now, known ones, how many rows.
SELECT hold FROM claims WHERE expires_at <= ? AND hold NOT IN (?) ORDER BY expires_at, sku, hold LIMIT ?
