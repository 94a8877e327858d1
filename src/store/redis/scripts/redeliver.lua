-- What was given out of a mailbox before, and is still there: the reply that brought it may have been lost.
--
-- KEYS  1 mailbox
-- ARGV  1 the id of the last entry that has arrived, 0-0 for none; 2 most entries
-- Returns the entries, as XRANGE does

local groups = redis.pcall('XINFO', 'GROUPS', KEYS[1])
if groups.err or not groups[1] then return {} end
for i = 1, #groups[1], 2 do
  if groups[1][i] == 'last-delivered-id' then
    return redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], groups[1][i + 1], 'COUNT', ARGV[2])
  end
end
return {}
