-- Entries, numbered on from the last one. $10: how many, $11: how many more holds, $12: SKUs, $13: the moment,
-- $14: whether they are a move's: the row is left alone if it must not be.
WITH counted AS (
    UPDATE totals SET seq = seq + $10, holds = holds + $11, skus = skus + $12, last_time = greatest(last_time, $13)
    WHERE is_moving = $14
    RETURNING seq - $10 AS before
)
INSERT INTO ledger (seq, at, kind, sku, available, held, sold, hold, order_id, reason)
SELECT counted.before + u.n, u.at, u.kind, u.sku, u.available, u.held, u.sold, u.hold, u.order_id, u.reason
FROM counted, unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::uuid[],
    $8::text[], $9::text[]) WITH ORDINALITY AS u (at, kind, sku, available, held, sold, hold, order_id, reason, n)
