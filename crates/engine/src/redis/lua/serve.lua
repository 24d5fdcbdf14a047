-- Opens a partition whose audit is done.
-- KEYS[1]  <space>:{p<N>}:epoch
-- ARGV[1]  the epoch of the audit
-- Answers 1, or 0 when another auditor has taken over.
if redis.call('GET', KEYS[1]) ~= 'a' .. ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1
