-- Payments heard of for the first time.
INSERT INTO payments (provider, payment_id, order_id, hold, amount, currency, email, authorized, captured, failed,
    canceled, refunded, status, received_at, capture_failed, refund_failed, disputed)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*end*/
