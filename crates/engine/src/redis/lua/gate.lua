-- Raises the epoch of a partition and shuts it to everybody but the auditor who raised it. Nothing of an earlier epoch is
-- touched: it lies under keys of its own.
-- KEYS[1]  <space>:{p<N>}:epoch
-- ARGV[1]  the new epoch
-- Answers the epoch that the partition is in now: 'a' and the new one, or a later one when another was faster.
local gate = redis.call('GET', KEYS[1])
local epoch = gate and tonumber((string.gsub(gate, '^a', '')))
if epoch and epoch > tonumber(ARGV[1]) then return gate end
redis.call('SET', KEYS[1], 'a' .. ARGV[1])
return 'a' .. ARGV[1]
