-- What every script of a partition begins with: the gate, the clock, and what the verbs share. One script runs a batch of
-- verbs on one partition, atomically.
--
-- KEYS[1]  <space>:{p<N>}:epoch, the epoch in which the partition serves; all other keys have the same hash tag
-- ARGV[1]  the epoch that the caller knows; with an 'a' before it when the caller audits the partition
-- ARGV[2]  the moment in ms, or '' for the server's clock
-- ARGV[3]  the number of the last log entry that the caller has seen here
-- ARGV[4]  the replication id of the server that the caller means: a server that was a replica in between has another
-- then, for each verb: its name, how many arguments it has, its arguments
--
-- Answers {'ok', moment, number of the last log entry, answers of the verbs}, or, having done nothing,
-- {'epoch', the epoch here} when the caller has to look again, {'behind', number} when this server has lost entries,
-- {'server', replication id} when it is not the one that was meant.
--
-- Keys under <space>:{p<N>}:e<epoch>: (nothing here ever has a TTL)
--   at             hash: seq = number of the last log entry, t = the latest moment
--   log            stream of what was decided here: H a hold was made, E a hold was expired, V what was logged of a hold is
--                  none; id = number of the entry
--   stock:<sku>    hash: a available, h held, s sold, l limit per customer, v version, z token that it is frozen by,
--                  n those of the held units that belong to parts that do not count yet
--   hold:<id>      a hold that claims units, packed; see the fields below. Of several partitions: at its order's home
--                  hold:<id> without lines, and where it has lines hold:<id>/p, its part
--   carts, parts   sorted sets: carts that are not complete, at home; parts that do not count yet
--   order:<id>     the id of the order's hold; with '+' before it once the order is confirmed
--   due            sorted set of holds by deadline;  due:<sku>  the same of those with a line of the SKU
--   has:<sku>      hash: units that a customer has held and bought
--   frozen         hash: the token that an order is frozen by
--   waits          hash: how many payments wait for a hold of this order
--   token:<token>  what is frozen by it, packed;  tokens  sorted set of them by moment
local server = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
if server ~= ARGV[4] then return {'server', server} end
local gate = redis.call('GET', KEYS[1])
if gate ~= ARGV[1] then return {'epoch', gate or ''} end
local K = string.sub(KEYS[1], 1, -6) .. 'e' .. string.gsub(gate, '^a', '') .. ':'
-- While its slot moves to another server, key by key, a key that is not here may be there already, and to ask for it fails.
-- A key that is nowhere tells before anything is written: a script that failed half-way would have done half of it.
local moving = redis.pcall('EXISTS', K .. 'nowhere')
if type(moving) == 'table' and moving.err then return redis.error_reply('TRYAGAIN its slot is being migrated') end
local at = redis.call('HMGET', K .. 'at', 'seq', 't')
local seq, latest = tonumber(at[1] or '0'), tonumber(at[2] or '0')
if seq < tonumber(ARGV[3]) then return {'behind', seq} end
local now
if ARGV[2] ~= '' then
  now = tonumber(ARGV[2])
else
  local time = redis.call('TIME')
  now = math.max(time[1] * 1000 + math.floor(time[2] / 1000), latest)
end

-- Fields of a hold. Lines are SKU, quantity, SKU, quantity, … and only those of this partition. The state is '' once it
-- counts; before that opening, sealed or undone for a cart at its home, tentative for a part.
local ORDER, CART, REST, CREATED, DEADLINE, CUSTOMER, LINES, MARK, STATE = 1, 2, 3, 4, 5, 6, 7, 8, 9
-- How many lapsed holds one script expires at the most: scripts have to be short.
local budget = 1000
local stocks, dues, facts, verbs = {}, {}, {}, {}
-- Values of keys that are written at the end, and whether hashes that are nearly always empty have anything in them: calls
-- of Redis are what a hold costs most.
local sets, filled = {}, {}

local ints = {}
local function int(number)
  local text = ints[number]
  if not text then
    text = string.format('%.0f', number)
    ints[number] = text
  end
  return text
end

local function get(key) return sets[key] or redis.call('GET', K .. key) end

local function del(key)
  sets[key] = nil
  redis.call('DEL', K .. key)
end

local function look_in(key, member)
  if filled[key] == nil then filled[key] = redis.call('EXISTS', K .. key) == 1 end
  return filled[key] and redis.call('HGET', K .. key, member)
end

local function field(text) return #text .. ':' .. text end

-- A SKU as it is; false when there is nothing of it. One that is only frozen has no version, nor has one that was removed
-- while a decided step still has units of it to move: what steps move adds up in any order.
local function stock(sku)
  local known = stocks[sku]
  if known == nil then
    local v = redis.call('HMGET', K .. 'stock:' .. sku, 'a', 'h', 's', 'l', 'v', 'z', 'n')
    known = (v[1] or v[5] or v[6]) and {
      a = tonumber(v[1] or '0'), h = tonumber(v[2] or '0'), s = tonumber(v[3] or '0'),
      l = tonumber(v[4] or nil), v = v[5], z = v[6], n = tonumber(v[7] or '0'),
    }
    stocks[sku] = known
  end
  return known
end

local function move(sku, available, held, sold)
  local known = stock(sku)
  if not known then
    known = {a = 0, h = 0, s = 0, n = 0}
    stocks[sku] = known
  end
  known.a, known.h, known.s, known.moved = known.a + available, known.h + held, known.s + sold, true
end

-- So many more of a SKU's held units do not count yet.
local function tentative(sku, units)
  local known = stock(sku)
  known.n = known.n + units
  redis.call('HSET', K .. 'stock:' .. sku, 'n', int(known.n))
end

local function load_hold(id)
  local packed = get('hold:' .. id)
  return packed and cmsgpack.unpack(packed)
end

local function save_hold(id, hold) sets['hold:' .. id] = cmsgpack.pack(hold) end

-- The hold's own id.
local function bare(id) return (string.gsub(id, '/p$', '')) end

-- A hold as text, as the ledger reads it.
local function hold_text(id, hold)
  return field(bare(id)) .. field(hold[ORDER]) .. field(int(hold[CREATED])) .. field(int(hold[DEADLINE])) .. hold[CART] .. hold[REST]
end

local function add_due(key, id, deadline)
  local list = dues[key]
  if not list then
    list = {}
    dues[key] = list
  end
  list[#list + 1] = int(deadline)
  list[#list + 1] = id
end

local function add_dues(id, hold)
  add_due('due', id, hold[DEADLINE])
  for i = 1, #hold[LINES], 2 do add_due('due:' .. hold[LINES][i], id, hold[DEADLINE]) end
end

-- What was gathered is written before anybody looks.
local function flush_dues()
  for key, list in pairs(dues) do
    for from = 1, #list, 4000 do
      redis.call('ZADD', K .. key, unpack(list, from, math.min(from + 3999, #list)))
    end
  end
  dues = {}
end

local function remove_dues(id, hold)
  flush_dues()
  redis.call('ZREM', K .. 'due', id)
  for i = 1, #hold[LINES], 2 do redis.call('ZREM', K .. 'due:' .. hold[LINES][i], id) end
end

local function has_more(sku, customer, units)
  if customer ~= '' and redis.call('HINCRBY', K .. 'has:' .. sku, customer, int(units)) == 0 then
    redis.call('HDEL', K .. 'has:' .. sku, customer)
  end
end

-- Forgets a hold; its order too if it is the order's.
local function forget_hold(id, order)
  del('hold:' .. id)
  if get('order:' .. order) == id then del('order:' .. order) end
end

-- Gives the units of a lapsed hold back and logs it.
local function expire(id, hold)
  remove_dues(id, hold)
  for i = 1, #hold[LINES], 2 do
    local sku, units = hold[LINES][i], hold[LINES][i + 1]
    move(sku, units, -units, 0)
    has_more(sku, hold[CUSTOMER], -units)
  end
  forget_hold(id, hold[ORDER])
  facts[#facts + 1], facts[#facts + 2] = 'E', field(int(now)) .. field(bare(id))
  budget = budget - 1
end

-- The hold that lapsed first under this key.
local function first_lapsed(key)
  flush_dues()
  return redis.call('ZRANGEBYSCORE', K .. key, '-inf', int(now), 'LIMIT', 0, 1)[1]
end

-- Expires lapsed holds on a SKU until it has so many units available, or none has lapsed; false when that takes too long
-- for one script.
local function free_up(sku, wanted)
  local known = stock(sku)
  while known and known.a < wanted do
    local id = first_lapsed('due:' .. sku)
    if not id then return true end
    if budget == 0 then return false end
    expire(id, load_hold(id))
  end
  return true
end

-- The first of the rules for the lines of a cart that refuses them, or nil. Lines stand in ARGV.
local function refusal(customer, first, last)
  local unknown, required, short, may_return = {}, {}, {}, 1
  for i = first, last, 2 do
    local known = stock(ARGV[i])
    if known and known.z then return {'busy', known.z} end
    if not (known and known.v) then unknown[#unknown + 1] = ARGV[i] end
  end
  if #unknown > 0 then return {'unknown_sku', unpack(unknown)} end
  for i = first, last, 2 do
    if stock(ARGV[i]).l and customer == '' then required[#required + 1] = ARGV[i] end
  end
  if #required > 0 then return {'customer_required', unpack(required)} end
  for i = first, last, 2 do
    local sku, units = ARGV[i], tonumber(ARGV[i + 1])
    local limit = stock(sku).l
    if limit then
      local function has() return tonumber(redis.call('HGET', K .. 'has:' .. sku, customer) or '0') end
      if has() + units > limit then
        -- What lapsed does not count.
        if not free_up(sku, math.huge) then return {'again'} end
        if has() + units > limit then return {'customer_limit', sku, int(limit), int(has()), int(units)} end
      end
    end
  end
  for i = first, last, 2 do
    local sku, units = ARGV[i], tonumber(ARGV[i + 1])
    if not free_up(sku, units) then return {'again'} end
    if stock(sku).a < units then
      short[#short + 1], short[#short + 2], short[#short + 3] = sku, int(units), int(stock(sku).a)
    end
  end
  if #short == 0 then return nil end
  for i = 1, #short, 3 do
    if stock(short[i]).h == 0 then may_return = 0 end
  end
  return {'sold_out', may_return, unpack(short)}
end

-- available -> held for the lines in ARGV; gives them as a hold keeps them.
local function take_lines(customer, first, last)
  local lines = {}
  for i = first, last, 2 do
    local units = tonumber(ARGV[i + 1])
    move(ARGV[i], -units, units, 0)
    has_more(ARGV[i], customer, units)
    lines[#lines + 1], lines[#lines + 2] = ARGV[i], units
  end
  return lines
end

local function log_held(id, hold)
  facts[#facts + 1] = 'H'
  facts[#facts + 1] = hold_text(id, hold)
end

-- What an order's hold means for a request with this cart: nil when there is none in the way.
local function standing(order, cart)
  local other = look_in('frozen', order)
  if other then return {'busy', other} end
  local id = get('order:' .. order)
  if not id then return nil end
  if string.sub(id, 1, 1) == '+' then return {'already_confirmed'} end
  local hold = load_hold(id)
  if hold[MARK] ~= '' then return {'busy', hold[MARK]} end
  if hold[STATE] ~= '' then return {'busy', ''} end
  if now < hold[DEADLINE] then
    if hold[CART] == cart then return {'replay', hold_text(id, hold)} end
    return {'order_conflict'}
  end
  expire(id, hold)
  return nil
end
