-- sweep: expires lapsed holds, those that lapsed first, first.
-- ARGV  at most so many
-- Answers {how many were expired, 1 when more have lapsed}.
verbs.sweep = function(i)
  local limit, expired = math.min(tonumber(ARGV[i]), budget), 0
  while true do
    local id = first_lapsed('due')
    if not id then return {expired, 0} end
    if expired == limit then return {expired, 1} end
    expire(id, load_hold(id))
    expired = expired + 1
  end
end
