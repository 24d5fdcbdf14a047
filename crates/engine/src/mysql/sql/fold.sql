-- What entries moved, by SKU: above this one, up to this one.
SELECT sku, CAST(SUM(available) AS SIGNED), CAST(SUM(held) AS SIGNED), CAST(SUM(sold) AS SIGNED)
FROM ledger WHERE seq > ? AND seq <= ? AND sku IS NOT NULL GROUP BY sku
