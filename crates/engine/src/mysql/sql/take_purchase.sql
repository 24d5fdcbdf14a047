-- What a customer gave back: units, below 0, customer, SKU.
UPDATE purchases SET units = units + ? WHERE customer_id = ? AND sku = ?
