-- Units in rows of their own.
INSERT INTO units (sku, n) VALUES /*row*/(?, ?)/*end*/
