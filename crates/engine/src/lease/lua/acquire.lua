-- Takes all locks of a lease, or none of them, and draws a fence that is higher than any drawn here for them.
--
-- KEYS: for each resource its lock, then its counter.
-- ARGV: [1] the attempt's token, [2] the time to live in milliseconds.
-- Answers the fence as text, or nil where one of the locks is somebody's.
--
-- Counters start at the clock in microseconds: one that was lost with its server goes on above what it had told, as long
-- as leases are drawn less often than that. Doubles are exact up to 2^53, which that clock reaches in the year 2255.
for i = 1, #KEYS, 2 do
    if redis.call('EXISTS', KEYS[i]) == 1 then
        return false
    end
end
local time = redis.call('TIME')
local fence = tonumber(time[1]) * 1000000 + tonumber(time[2])
for i = 2, #KEYS, 2 do
    local last = tonumber(redis.call('GET', KEYS[i]) or '0')
    if last >= fence then
        fence = last + 1
    end
end
local text = string.format('%.0f', fence)
for i = 1, #KEYS, 2 do
    redis.call('SET', KEYS[i], ARGV[1], 'NX', 'PX', ARGV[2])
    redis.call('SET', KEYS[i + 1], text)
end
return text
