-- Ensures that an instance without a lease never gets one again: a renewal that reads 'dead' has lost the lease.
--
-- The instance frees none of the messages that were delivered to it any more, and nobody else reads them. They can
-- contain credentials, so they are removed. Undelivered messages stay: their senders withdraw them.
--
-- KEYS  1 lease, 2 mailbox
-- ARGV  1 TTL in ms
-- Returns 1 the instance is dead, 0 the instance holds its lease

local state = redis.call('GET', KEYS[1])
if state == 'alive' then return 0 end
redis.call('SET', KEYS[1], 'dead', 'PX', ARGV[1])
-- Each takeover of a session declares its owner dead. The first of them has removed the messages.
if state == 'dead' or redis.call('EXISTS', KEYS[2]) == 0 then return 1 end
local groups = redis.call('XINFO', 'GROUPS', KEYS[2])
if not groups[1] then return 1 end
for i = 1, #groups[1], 2 do
  if groups[1][i] == 'last-delivered-id' then
    redis.call('XTRIM', KEYS[2], 'MINID', groups[1][i + 1])
    redis.call('XDEL', KEYS[2], groups[1][i + 1])
  end
end
return 1
