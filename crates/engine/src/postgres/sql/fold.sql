-- What entries moved, by SKU. $1: above this one, $2: up to this one.
SELECT sku, sum(available)::bigint, sum(held)::bigint, sum(sold)::bigint
FROM ledger WHERE seq > $1 AND seq <= $2 AND sku IS NOT NULL GROUP BY sku
