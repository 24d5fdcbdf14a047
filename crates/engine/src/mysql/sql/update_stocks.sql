-- SKUs as they are now, where nobody has written them since they were read at a revision; or whoever has.
UPDATE (
    /*row*/SELECT CAST(? AS BINARY) AS sku, CAST(? AS SIGNED) AS available, CAST(? AS SIGNED) AS held,
        CAST(? AS SIGNED) AS sold, CAST(? AS SIGNED) AS limit_per_customer, CAST(? AS SIGNED) AS version,
        CAST(? AS SIGNED) AS carved,
        CAST(? AS SIGNED) AS revision, CAST(? AS SIGNED) AS is_naive/*end*/
) AS u STRAIGHT_JOIN stock s ON s.sku = u.sku
SET s.available = u.available, s.held = u.held, s.sold = u.sold, s.limit_per_customer = u.limit_per_customer,
    s.version = u.version, s.carved = u.carved, s.revision = s.revision + 1
WHERE s.revision = u.revision OR u.is_naive
