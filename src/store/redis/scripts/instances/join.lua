-- Gives a new name its first lease.
--
-- KEYS  1 lease, 2 mailbox
-- ARGV  1 lease in ms, 2 TTL of the mailbox in ms
-- Returns 1 the lease is held, 0 the name was declared dead

local state = redis.call('GET', KEYS[1])
if state == 'dead' then return 0 end
-- The first write must be one that a full Redis accepts. It then accepts the others too: without a lease no session
-- works.
redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('SET', KEYS[1], 'alive', 'PX', ARGV[1])
-- The group remembers which entries of the mailbox were delivered. In a repeated call the group already exists.
local made = redis.pcall('XGROUP', 'CREATE', KEYS[2], 'r', '0', 'MKSTREAM')
if made.err and string.sub(made.err, 1, 9) ~= 'BUSYGROUP' then return made end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
