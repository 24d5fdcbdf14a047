-- counters: a SKU's counters as they stand, lapsed holds still counted as held.
-- ARGV  SKU
-- Answers {available, held, sold}, or {} when it is unknown.
verbs.counters = function(i)
  local known = stock(ARGV[i])
  if not (known and known.v) then return {} end
  return {int(known.a), int(known.h), int(known.s)}
end

-- members: holds that have units of a SKU in this partition and may have lapsed, those that lapse first, first.
-- ARGV  SKU
-- Answers id and units, id and units, … of a thousand at the most.
verbs.members = function(i)
  flush_dues()
  local told = {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', K .. 'due:' .. ARGV[i], '-inf', '+inf', 'LIMIT', 0, 1000)) do
    local lines = load_hold(id)[LINES]
    for j = 1, #lines, 2 do
      if lines[j] == ARGV[i] then
        told[#told + 1], told[#told + 2] = bare(id), int(lines[j + 1])
      end
    end
  end
  return told
end
