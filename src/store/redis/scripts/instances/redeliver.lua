-- Reads entries that were delivered from a mailbox before and are still in it. The first reply with them may have been
-- lost.
--
-- KEYS  1 mailbox
-- ARGV  1 id of the last entry that has arrived, 0-0 for none; 2 maximum number of entries
-- Returns the entries, as XRANGE does

if redis.call('EXISTS', KEYS[1]) == 0 then return {} end
local groups = redis.call('XINFO', 'GROUPS', KEYS[1])
if not groups[1] then return {} end
for i = 1, #groups[1], 2 do
  if groups[1][i] == 'last-delivered-id' then
    return redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], groups[1][i + 1], 'COUNT', ARGV[2])
  end
end
return {}
