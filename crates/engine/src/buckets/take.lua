-- Takes a token from every bucket, or from none where one of them has none. On this server's clock, for all who share it.
--
-- KEYS: the buckets, each once, all with one hash tag.
-- ARGV: for each bucket its capacity in millionths of a token, then its rate in millionths of a token per second.
-- Answers for each bucket the microseconds until it has a token. All 0: one was taken from each. Otherwise none was.
--
-- A bucket is kept as what it lacks, in millionths of a token and a rest in millionths of those, with the moment and the
-- rate that this was reckoned by: 'lack rest at rate'. So nothing is rounded away, a bucket that lacks nothing is no key,
-- and a key may expire when the bucket is full. Doubles are exact up to 2^53. Capacities are 10^13 at the most, rates
-- 10^15; products that may be larger are only compared, with what is far below.
local TOKEN, MILLION, JITTER = 1000000, 1000000, 5000000
local time = redis.call('TIME')
local now = tonumber(time[1]) * MILLION + tonumber(time[2])

-- What is lacking after some microseconds at a rate.
local function refill(lack, rest, rate, passed)
  local seconds = math.floor(passed / MILLION)
  local whole = rate * seconds
  if whole > lack then return 0, 0 end
  local micros = passed - seconds * MILLION
  local tokens = math.floor(rate / MILLION)
  local part = (rate - tokens * MILLION) * micros
  local parts = math.floor(part / MILLION)
  lack = lack - whole - tokens * micros - parts
  rest = rest - (part - parts * MILLION)
  if rest < 0 then
    lack = lack - 1
    rest = rest + MILLION
  end
  if lack < 0 then return 0, 0 end
  return lack, rest
end

-- Writes what a bucket lacks now. It expires a second after it is full.
local function keep(key, lack, rest, at, rate)
  local ms = math.ceil((lack + 1) / rate * 1000) + 1000 + math.ceil((at - now) / 1000)
  redis.call('SET', key, string.format('%.0f %.0f %.0f %.0f', lack, rest, at, rate), 'PX', string.format('%.0f', ms))
end

local buckets, waits, is_refused = {}, {}, false
for i, key in ipairs(KEYS) do
  local capacity, rate = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local lack, rest, at, is_other = 0, 0, now, false
  local text = redis.call('GET', key)
  if text then
    local a, b, c, d = string.match(text, '^(%d+) (%d+) (%d+) (%d+)$')
    lack, rest, at = tonumber(a), tonumber(b), tonumber(c)
    local before = tonumber(d)
    if at - now > JITTER then
      -- The clock was set back: no time has passed, and it passes from here on.
      at, is_other = now, true
    elseif now > at then
      lack, rest = refill(lack, rest, before, now - at)
      at = now
    end
    -- What was taken at another rate stays taken, up to an empty bucket of the new size.
    if before ~= rate then is_other = true end
    if lack >= capacity and lack + rest > capacity then lack, rest, is_other = capacity, 0, true end
  end
  local wait, over = 0, lack - (capacity - TOKEN)
  if over > 0 or over == 0 and rest > 0 then
    wait = math.floor((over * MILLION + rest + rate - 1) / rate) + (at - now)
    is_refused = true
  end
  buckets[i], waits[i] = {lack, rest, at, rate, is_other}, wait
end
for i, key in ipairs(KEYS) do
  local lack, rest, at, rate, is_other = unpack(buckets[i])
  if not is_refused then
    keep(key, lack + TOKEN, rest, at, rate)
  elseif is_other then
    keep(key, lack, rest, at, rate)
  end
end
return waits
