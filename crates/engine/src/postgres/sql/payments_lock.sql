-- Payments, locked. $1: providers, $2: payment ids, pairwise.
SELECT p.provider, p.payment_id, p.order_id, p.hold, p.amount, p.currency, p.email, p.authorized, p.captured, p.failed, p.canceled, p.refunded, p.status, p.received_at
FROM unnest($1::text[], $2::text[]) AS asked (provider, payment_id)
JOIN payments p ON p.provider = asked.provider AND p.payment_id = asked.payment_id
ORDER BY p.n FOR UPDATE OF p
