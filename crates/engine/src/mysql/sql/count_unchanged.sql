-- How many of the SKUs nobody has written since they were read.
SELECT COUNT(*) FROM (
    /*row*/SELECT CAST(? AS BINARY) AS sku, CAST(? AS SIGNED) AS revision/*end*/
) AS u STRAIGHT_JOIN stock s ON s.sku = u.sku AND s.revision = u.revision
