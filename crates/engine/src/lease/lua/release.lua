-- Gives the locks of a lease back: those that are ours, and no others.
--
-- KEYS: the lock of each resource.
-- ARGV: [1] the token.
-- Answers how many were ours.
local gone = 0
for i = 1, #KEYS do
    if redis.call('GET', KEYS[i]) == ARGV[1] then
        gone = gone + redis.call('DEL', KEYS[i])
    end
end
return gone
