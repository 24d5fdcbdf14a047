-- An order as it is now.
UPDATE orders SET status = ?, lines_text = ?, payment_provider = ?, payment_id = ? WHERE order_id = ?
