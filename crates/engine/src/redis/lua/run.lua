-- Runs the verbs one after another, then writes what they gathered: counters, deadlines, the log.
local answers, i = {}, 5
while i <= #ARGV do
  local count = tonumber(ARGV[i + 1])
  answers[#answers + 1] = verbs[ARGV[i]](i + 2, count)
  i = i + 2 + count
end
for sku, known in pairs(stocks) do
  if known and known.moved and not known.v and known.a == 0 and known.h == 0 and known.s == 0 then
    redis.call('HDEL', K .. 'stock:' .. sku, 'a', 'h', 's')
  elseif known and known.moved then
    redis.call('HSET', K .. 'stock:' .. sku, 'a', int(known.a), 'h', int(known.h), 's', int(known.s))
  end
end
local list = {}
for key, value in pairs(sets) do
  list[#list + 1], list[#list + 2] = K .. key, value
  if #list == 4000 then
    redis.call('MSET', unpack(list))
    list = {}
  end
end
if #list > 0 then redis.call('MSET', unpack(list)) end
flush_dues()
for from = 1, #facts, 4000 do
  seq = seq + 1
  redis.call('XADD', K .. 'log', int(seq) .. '-1', unpack(facts, from, math.min(from + 3999, #facts)))
end
if #facts > 0 then redis.call('HSET', K .. 'at', 'seq', int(seq), 't', int(math.max(now, latest))) end
return {'ok', now, seq, answers}
