-- Units that holds claim, by SKU.
SELECT sku, sum(quantity)::bigint FROM claims GROUP BY sku
