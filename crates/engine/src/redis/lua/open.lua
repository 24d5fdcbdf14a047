-- open: begins a hold of several partitions at the home of its order.
-- ARGV  id, order, cart, rest, ttl in ms, customer or ''
-- Answers {'opened', created, deadline}, or what stands in its way as `hold` does.
verbs.open = function(i)
  local id, order, cart = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local no = standing(order, cart)
  if no then return no end
  save_hold(id, {order, cart, ARGV[i + 3], now, now + ARGV[i + 4], ARGV[i + 5], {}, '', 'opening'})
  sets['order:' .. order] = id
  redis.call('ZADD', K .. 'carts', int(now), id)
  return {'opened', now, now + ARGV[i + 4]}
end

-- seal: the cart is whole; from here on it is made, not given up.
-- ARGV  id
-- Answers {'sealed'}, or {'gone'} when it was given up before.
verbs.seal = function(i)
  local hold = load_hold(ARGV[i])
  if not hold or (hold[STATE] ~= 'opening' and hold[STATE] ~= 'sealed') then return {'gone'} end
  hold[STATE] = 'sealed'
  save_hold(ARGV[i], hold)
  return {'sealed'}
end

-- complete: all parts are in place; it may be answered.
-- ARGV  id
-- Answers {'complete', created, deadline, payments waiting}, or {'gone'}.
verbs.complete = function(i)
  local id = ARGV[i]
  local hold = load_hold(id)
  if not hold or hold[STATE] == 'opening' or hold[STATE] == 'undone' then return {'gone'} end
  if hold[STATE] == 'sealed' then
    hold[STATE] = ''
    save_hold(id, hold)
    redis.call('ZREM', K .. 'carts', id)
    add_dues(id, hold)
  end
  return {'complete', hold[CREATED], hold[DEADLINE], tonumber(look_in('waits', hold[ORDER]) or '0')}
end

-- undo: a sealed cart of which a part is gone: from here on it is given up, not made.
-- ARGV  id
-- Answers {'undone'}, or the state that it is in: {'opening'}, {''} when it is complete, {'gone'}.
verbs.undo = function(i)
  local hold = load_hold(ARGV[i])
  if not hold then return {'gone'} end
  if hold[STATE] ~= 'sealed' and hold[STATE] ~= 'undone' then return {hold[STATE]} end
  hold[STATE] = 'undone'
  save_hold(ARGV[i], hold)
  return {'undone'}
end

-- abort: forgets a cart that was not sealed, or that was undone and whose parts are void.
-- ARGV  id, 'opening' or 'undone'
-- Answers {'aborted'}, or the state that it is in: {'opening'}, {'sealed'}, {'undone'}, {''} when it is complete, {'gone'}.
verbs.abort = function(i)
  local id = ARGV[i]
  local hold = load_hold(id)
  if not hold then return {'gone'} end
  if hold[STATE] ~= ARGV[i + 1] then return {hold[STATE]} end
  forget_hold(id, hold[ORDER])
  redis.call('ZREM', K .. 'carts', id)
  return {'aborted'}
end

-- state: what a cart's home says of it.
-- ARGV  id
-- Answers {state, hold}, or {'gone'}.
verbs.state = function(i)
  local hold = load_hold(ARGV[i])
  if not hold then return {'gone'} end
  return {hold[STATE], hold_text(ARGV[i], hold)}
end
