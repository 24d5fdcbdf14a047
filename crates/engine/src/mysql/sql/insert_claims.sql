-- New claims.
INSERT INTO claims (sku, expires_at, hold, quantity) VALUES /*row*/(?, ?, ?, ?)/*end*/
