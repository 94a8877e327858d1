-- Makes the mailbox of an instance that lives readable again, after its data were lost.
--
-- KEYS  1 lease, 2 mailbox
-- ARGV  1 TTL in ms
-- Returns 1 it can be read, 0 the instance does not live

if redis.call('GET', KEYS[1]) ~= 'alive' then return 0 end
redis.pcall('XGROUP', 'CREATE', KEYS[2], 'r', '0', 'MKSTREAM')
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return 1
