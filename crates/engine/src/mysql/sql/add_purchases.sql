-- What customers bought.
INSERT INTO purchases (customer_id, sku, units) VALUES /*row*/(?, ?, ?)/*end*/
ON DUPLICATE KEY UPDATE units = units + VALUES(units)
