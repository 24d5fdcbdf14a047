-- A payment as it is now; the last two values are its provider and id.
UPDATE payments SET order_id = ?, hold = ?, amount = ?, currency = ?, email = ?, authorized = ?, captured = ?,
    failed = ?, canceled = ?, refunded = ?, status = ?, received_at = ?, capture_failed = ?,
    refund_failed = ?, disputed = ?
WHERE provider = ? AND payment_id = ?
