-- Gives the locks of a lease their whole time to live again. Never makes one that is gone.
--
-- KEYS: the lock of each resource.
-- ARGV: [1] the token, [2] the time to live in milliseconds.
-- Answers 1, or 0 where one of the locks is not ours: then nothing is changed.
for i = 1, #KEYS do
    if redis.call('GET', KEYS[i]) ~= ARGV[1] then
        return 0
    end
end
for i = 1, #KEYS do
    redis.call('PEXPIRE', KEYS[i], ARGV[2])
end
return 1
