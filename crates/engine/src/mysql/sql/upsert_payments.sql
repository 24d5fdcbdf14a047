-- Payments as they are now.
INSERT INTO payments (provider, payment_id, order_id, hold, amount, currency, email, authorized, captured, failed,
    canceled, refunded, status, received_at)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*end*/
ON DUPLICATE KEY UPDATE order_id = VALUES(order_id), hold = VALUES(hold), amount = VALUES(amount),
    currency = VALUES(currency), email = VALUES(email), authorized = VALUES(authorized), captured = VALUES(captured),
    failed = VALUES(failed), canceled = VALUES(canceled), refunded = VALUES(refunded), status = VALUES(status),
    received_at = VALUES(received_at)
