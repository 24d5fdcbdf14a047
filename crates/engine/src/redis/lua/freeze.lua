-- freeze: keeps holds, orders and SKUs as they are until `apply`, all or none of them. May be called again under the same
-- token, with the same or with more.
-- ARGV  token, then kind and value of each: sku <SKU>, or look <SKU> when what has lapsed shall stay as it is; hold <id>;
--       part <id> for the part of a hold that is in this partition; order <order id> for the order and its hold
-- Answers {'frozen', for each hold, part or order the hold as text, or ''}; {'busy', token or ''} when somebody else has one
-- of them; {'again'} when more has lapsed than one script may expire; {'waits'} when the SKUs are frozen, but carts that
-- were begun before are still being put together of them.
verbs.freeze = function(i, n)
  local token = ARGV[i]
  local packed = redis.call('GET', K .. 'token:' .. token)
  local frozen = packed and cmsgpack.unpack(packed) or {{}, {}, {}}
  local found, told, waits = {}, {}, false
  for j = i + 1, i + n - 1, 2 do
    local kind, value = ARGV[j], ARGV[j + 1]
    if kind == 'sku' or kind == 'look' then
      local known = stock(value)
      if known and known.z and known.z ~= token then return {'busy', known.z} end
      -- Nothing that has lapsed is left on a frozen SKU: whoever decides sees all the units there are.
      if kind == 'sku' and not free_up(value, math.huge) then return {'again'} end
    end
  end
  for j = i + 1, i + n - 1, 2 do
    local kind, id = ARGV[j], ARGV[j + 1]
    if kind == 'part' then id = id .. '/p' end
    if kind == 'order' then
      local other = redis.call('HGET', K .. 'frozen', id)
      if other and other ~= token then return {'busy', other} end
      id = get('order:' .. id) or ''
    end
    if kind ~= 'sku' and kind ~= 'look' then
      local hold = string.sub(id, 1, 1) ~= '+' and load_hold(id)
      if hold then
        if hold[MARK] ~= '' and hold[MARK] ~= token then return {'busy', hold[MARK]} end
        if hold[STATE] ~= '' then return {'busy', ''} end
        found[#found + 1] = id
      end
      told[#told + 1] = hold and hold_text(id, hold) or ''
    end
  end
  for j = i + 1, i + n - 1, 2 do
    local kind, value = ARGV[j], ARGV[j + 1]
    if kind == 'sku' or kind == 'look' then
      redis.call('HSET', K .. 'stock:' .. value, 'z', token)
      local known = stock(value)
      if known then
        known.z = token
        waits = waits or known.n > 0
      else
        stocks[value] = nil
      end
      frozen[2][#frozen[2] + 1] = value
    elseif kind == 'order' then
      redis.call('HSET', K .. 'frozen', value, token)
      frozen[3][#frozen[3] + 1] = value
    end
  end
  for _, id in ipairs(found) do
    local hold = load_hold(id)
    if hold[MARK] == '' then
      -- What is not due is not expired.
      remove_dues(id, hold)
      hold[MARK] = token
      save_hold(id, hold)
      frozen[1][#frozen[1] + 1] = id
    end
  end
  redis.call('SET', K .. 'token:' .. token, cmsgpack.pack(frozen))
  redis.call('ZADD', K .. 'tokens', int(now), token)
  if waits then return {'waits'} end
  return {'frozen', unpack(told)}
end
