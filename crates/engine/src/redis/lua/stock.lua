-- stock: a SKU as of now. Nothing is changed: what has lapsed counts as available, swept or not.
-- ARGV  SKU
-- Answers {available, held, sold, limit or '', version}, {} when it is unknown, {'again'} when so much has lapsed that a
-- sweep has to go first.
verbs.stock = function(i)
  local sku = ARGV[i]
  local known = stock(sku)
  if not (known and known.v) then return {} end
  flush_dues()
  local lapsed, units = redis.call('ZRANGEBYSCORE', K .. 'due:' .. sku, '-inf', int(now), 'LIMIT', 0, 1001), 0
  if #lapsed > 1000 then return {'again'} end
  for _, id in ipairs(lapsed) do
    local lines = load_hold(id)[LINES]
    for j = 1, #lines, 2 do
      if lines[j] == sku then units = units + lines[j + 1] end
    end
  end
  -- Units may be taken in the ledger before those that came back for it are told here: never fewer than none.
  return {int(math.max(known.a + units, 0)), int(known.h - units), int(known.s), known.l and int(known.l) or '', known.v}
end
