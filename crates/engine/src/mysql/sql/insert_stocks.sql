-- New SKUs.
INSERT INTO stock (sku, available, held, sold, limit_per_customer, version, fence, revision)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, 0)/*end*/
