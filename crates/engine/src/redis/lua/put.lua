-- put: while a partition is audited, fills it with what the ledger has.
-- ARGV  kind and particulars: stock SKU, available, held, sold, limit or '', version, the epoch before;
--       hold (as the effect `live`), at its home; part (the same), where it has lines; confirmed order, hold; has SKU, customer, units;
--       waits order, payments; clock the latest moment of the ledger in ms
-- Answers {'put'}; for a SKU that had other counters in the epoch before also how much more of each it has now.
verbs.put = function(i, n)
  local kind = ARGV[i]
  if kind == 'stock' then
    local sku, a, h, s = ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4])
    stocks[sku] = {a = a, h = h, s = s, n = 0, moved = true}
    set_terms(sku, ARGV[i + 5], ARGV[i + 6])
    local before = string.sub(KEYS[1], 1, -6) .. 'e' .. ARGV[i + 7] .. ':stock:' .. sku
    local v = redis.call('HMGET', before, 'a', 'h', 's')
    local da, dh, ds = a - tonumber(v[1] or '0'), h - tonumber(v[2] or '0'), s - tonumber(v[3] or '0')
    if v[1] and (da ~= 0 or dh ~= 0 or ds ~= 0) then return {'put', da, dh, ds} end
  elseif kind == 'clock' then
    -- The clock of this server may be behind that of the one before.
    redis.call('HSET', K .. 'at', 't', ARGV[i + 1])
  elseif kind == 'hold' or kind == 'part' then
    effects.live(i + 1, n - 1)
    if kind == 'hold' then sets['order:' .. ARGV[i + 2]] = ARGV[i + 1] end
  else
    effects[kind](i + 1, n - 1)
  end
  return {'put'}
end
