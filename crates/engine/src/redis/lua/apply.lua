-- apply: does what was decided about what is frozen by a token, and lets everything go. A token that is not there has been
-- applied before: nothing is done.
-- ARGV  token, then for each effect its name, how many arguments it has, its arguments:
--   stock    SKU, more available, more held, more sold, limit or '', version or '' when limit and version stay
--   made     SKU, available, limit or '', version
--   removed  SKU
--   ended    hold, order
--   live     hold, order, cart, rest, created, deadline, customer or '', then SKU and quantity of each line
--   confirmed  order, hold
--   has      SKU, customer, more units
--   waits    order, more payments
-- Answers {'applied'} or {'gone'}.
local effects = {}

local function set_terms(sku, limit, version)
  local known = stock(sku)
  known.l, known.v = tonumber(limit), version
  redis.call('HSET', K .. 'stock:' .. sku, 'v', version)
  if limit == '' then
    redis.call('HDEL', K .. 'stock:' .. sku, 'l')
  else
    redis.call('HSET', K .. 'stock:' .. sku, 'l', limit)
  end
end

effects.stock = function(i)
  move(ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]))
  if ARGV[i + 5] ~= '' then set_terms(ARGV[i], ARGV[i + 4], ARGV[i + 5]) end
end

effects.made = function(i)
  move(ARGV[i], tonumber(ARGV[i + 1]), 0, 0)
  set_terms(ARGV[i], ARGV[i + 2], ARGV[i + 3])
end

effects.removed = function(i)
  move(ARGV[i], 0, 0, 0)
  local known = stock(ARGV[i])
  known.l, known.v = nil, nil
  redis.call('HDEL', K .. 'stock:' .. ARGV[i], 'v', 'l')
end

effects.ended = function(i)
  forget_hold(ARGV[i], ARGV[i + 1])
  del('hold:' .. ARGV[i] .. '/p')
end

effects.live = function(i, n)
  local lines = {}
  for j = i + 7, i + n - 1, 2 do lines[#lines + 1], lines[#lines + 2] = ARGV[j], tonumber(ARGV[j + 1]) end
  local before = load_hold(ARGV[i])
  local hold = {
    ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], tonumber(ARGV[i + 4]), tonumber(ARGV[i + 5]), ARGV[i + 6], lines,
    before and before[MARK] or '', '',
  }
  save_hold(ARGV[i], hold)
  -- What is marked becomes due again when it is let go.
  if hold[MARK] == '' then add_dues(ARGV[i], hold) end
end

effects.confirmed = function(i) sets['order:' .. ARGV[i]] = '+' .. ARGV[i + 1] end

effects.has = function(i) has_more(ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])) end

effects.waits = function(i)
  if redis.call('HINCRBY', K .. 'waits', ARGV[i], ARGV[i + 1]) <= 0 then redis.call('HDEL', K .. 'waits', ARGV[i]) end
end

verbs.apply = function(i, n)
  local token = ARGV[i]
  local packed = redis.call('GET', K .. 'token:' .. token)
  if not packed then return {'gone'} end
  redis.call('DEL', K .. 'token:' .. token)
  redis.call('ZREM', K .. 'tokens', token)
  local frozen, j = cmsgpack.unpack(packed), i + 1
  for _, sku in ipairs(frozen[2]) do
    redis.call('HDEL', K .. 'stock:' .. sku, 'z')
    stocks[sku] = nil
  end
  for _, order in ipairs(frozen[3]) do redis.call('HDEL', K .. 'frozen', order) end
  while j < i + n do
    local count = tonumber(ARGV[j + 1])
    effects[ARGV[j]](j + 2, count)
    j = j + 2 + count
  end
  for _, id in ipairs(frozen[1]) do
    local hold = load_hold(id)
    if hold and hold[MARK] == token then
      hold[MARK] = ''
      save_hold(id, hold)
      add_dues(id, hold)
    end
  end
  return {'applied'}
end
