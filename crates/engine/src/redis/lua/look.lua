-- look: a hold that claims units, or did until it lapsed.
-- ARGV  id
-- Answers {hold}, or {} when there is none.
verbs.look = function(i)
  local hold = load_hold(ARGV[i])
  if not hold or hold[STATE] ~= '' then return {} end
  return {hold_text(ARGV[i], hold)}
end
