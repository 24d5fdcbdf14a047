-- Units that holds claim, by SKU.
SELECT sku, CAST(SUM(quantity) AS SIGNED) FROM claims GROUP BY sku
