-- Which SKUs have lapsed holds: SKUs, now.
SELECT sku FROM (SELECT sku, MIN(expires_at) AS first FROM claims WHERE sku IN (?) GROUP BY sku) AS earliest
WHERE first <= ?
