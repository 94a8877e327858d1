-- Makes the mailbox of a live instance readable again after its data were lost.
--
-- KEYS  1 lease, 2 mailbox
-- ARGV  1 TTL in ms
-- Returns 1 the mailbox can be read, 0 the instance is not alive

if redis.call('GET', KEYS[1]) ~= 'alive' then return 0 end
-- The first write must be one that a full Redis accepts. It then accepts the others too.
redis.call('PEXPIRE', KEYS[2], ARGV[1])
local made = redis.pcall('XGROUP', 'CREATE', KEYS[2], 'r', '0', 'MKSTREAM')
if made.err and string.sub(made.err, 1, 9) ~= 'BUSYGROUP' then return made end
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return 1
