-- Orders as they are now.
UPDATE orders o
SET status = u.status, lines = u.lines, payment_provider = u.payment_provider, payment_id = u.payment_id
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
    AS u (order_id, status, lines, payment_provider, payment_id)
WHERE o.order_id = ANY ($1::text[]) AND o.order_id = u.order_id
