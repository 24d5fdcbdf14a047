-- hold: decides a hold whose order and SKUs all live in this partition.
-- ARGV  id, order, cart, rest, ttl in ms, customer or '', then SKU and quantity of each line
-- Answers {'held', created, deadline, payments waiting} or {'replay', hold}, or a refusal with its particulars;
-- {'busy', token} while something is frozen, {'again'} when more has lapsed than one script may expire.
verbs.hold = function(i, n)
  local id, order, cart, customer, last = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 5], i + n - 1
  local no = standing(order, cart) or refusal(customer, i + 6, last)
  if no then return no end
  local lines = take_lines(customer, i + 6, last)
  local hold = {order, cart, ARGV[i + 3], now, now + ARGV[i + 4], customer, lines, '', ''}
  save_hold(id, hold)
  sets['order:' .. order] = id
  add_dues(id, hold)
  log_held(id, hold)
  return {'held', now, hold[DEADLINE], tonumber(look_in('waits', order) or '0')}
end
