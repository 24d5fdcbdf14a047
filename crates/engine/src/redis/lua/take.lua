-- take: takes the units of a part of a cart, for the time being.
-- ARGV  id, order, cart, rest, created, deadline, customer or '', then SKU and quantity of each line in this partition
-- Answers {'taken'}, or a refusal as `hold` does.
verbs.take = function(i, n)
  local id, customer, last = ARGV[i] .. '/p', ARGV[i + 6], i + n - 1
  if load_hold(id) then return {'taken'} end
  local no = refusal(customer, i + 7, last)
  if no then return no end
  local lines = take_lines(customer, i + 7, last)
  for j = 1, #lines, 2 do tentative(lines[j], lines[j + 1]) end
  save_hold(id, {
    ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], tonumber(ARGV[i + 4]), tonumber(ARGV[i + 5]), customer, lines, '', 'tentative',
  })
  redis.call('ZADD', K .. 'parts', int(now), ARGV[i])
  return {'taken'}
end

-- check: what would refuse a part; nothing is taken.
-- ARGV  customer or '', then SKU and quantity of each line in this partition
-- Answers {'fine'} or a refusal as `hold` does.
verbs.check = function(i, n) return refusal(ARGV[i], i + 1, i + n - 1) or {'fine'} end

-- fix: the cart is sealed: its part counts from here on. A part that is not there is never taken again: it was given up, or
-- has lapsed, and its units may be somebody else's.
-- ARGV  id
-- Answers {'fixed'} or {'gone'}.
verbs.fix = function(i)
  local id = ARGV[i] .. '/p'
  local hold = load_hold(id)
  if not hold then return {'gone'} end
  if hold[STATE] == 'tentative' then
    for j = 1, #hold[LINES], 2 do tentative(hold[LINES][j], -hold[LINES][j + 1]) end
    hold[STATE] = ''
    save_hold(id, hold)
    redis.call('ZREM', K .. 'parts', ARGV[i])
    add_dues(id, hold)
    log_held(id, hold)
  end
  return {'fixed'}
end

-- drop: gives the units of a part back that does not count yet.
-- ARGV  id
-- Answers {'dropped'}, or {'fixed'} when it counts.
verbs.drop = function(i)
  local id = ARGV[i] .. '/p'
  local hold = load_hold(id)
  if not hold then return {'dropped'} end
  if hold[STATE] ~= 'tentative' then return {'fixed'} end
  for j = 1, #hold[LINES], 2 do
    local sku, units = hold[LINES][j], hold[LINES][j + 1]
    tentative(sku, -units)
    move(sku, units, -units, 0)
    has_more(sku, hold[CUSTOMER], -units)
  end
  del('hold:' .. id)
  redis.call('ZREM', K .. 'parts', ARGV[i])
  return {'dropped'}
end

-- void: ends the part of a cart that was undone, whether or not it counts. What was logged of it is no hold, which is logged
-- behind it in the same log: the ledger never has one without the other.
-- ARGV  id
-- Answers {'void'}.
verbs.void = function(i)
  verbs.drop(i)
  local id = ARGV[i] .. '/p'
  local hold = load_hold(id)
  if hold then expire(id, hold) end
  facts[#facts + 1], facts[#facts + 2] = 'V', field(ARGV[i])
  return {'void'}
end

-- lapse: ends what this partition has of a hold: at its home, and its part.
-- ARGV  id, '1' to end it whether or not it has lapsed
-- Answers {'lapsed'}; {'busy', token} when it is frozen.
verbs.lapse = function(i)
  for _, id in ipairs({ARGV[i], ARGV[i] .. '/p'}) do
    local hold = load_hold(id)
    if hold and hold[MARK] ~= '' then return {'busy', hold[MARK]} end
    if hold and hold[STATE] == '' and (ARGV[i + 1] == '1' or now >= hold[DEADLINE]) then expire(id, hold) end
  end
  return {'lapsed'}
end

-- due: what has lapsed and was not expired.
-- ARGV  at most so many
-- Answers deadline and id, deadline and id, …
verbs.due = function(i)
  flush_dues()
  local found, told = redis.call('ZRANGEBYSCORE', K .. 'due', '-inf', int(now), 'WITHSCORES', 'LIMIT', 0, ARGV[i]), {}
  for j = 1, #found, 2 do
    told[j], told[j + 1] = found[j + 1], bare(found[j])
  end
  return told
end
