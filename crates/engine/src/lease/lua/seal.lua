-- Raises the counters of a lease to its fence, so that whoever comes next draws a higher one.
--
-- KEYS: for each resource its lock, then its counter.
-- ARGV: [1] the attempt's token, [2] the fence.
-- Answers 1, or 0 where one of the locks is not ours: then nothing is changed.
for i = 1, #KEYS, 2 do
    if redis.call('GET', KEYS[i]) ~= ARGV[1] then
        return 0
    end
end
for i = 2, #KEYS, 2 do
    if tonumber(redis.call('GET', KEYS[i]) or '0') < tonumber(ARGV[2]) then
        redis.call('SET', KEYS[i], ARGV[2])
    end
end
return 1
