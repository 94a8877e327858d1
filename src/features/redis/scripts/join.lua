-- Gives a new name its first lease.
--
-- KEYS  1 lease
-- ARGV  1 lease in ms
-- Returns 1 the lease is held, 0 the name was declared dead

if redis.call('GET', KEYS[1]) == 'dead' then return 0 end
-- The first write must be one that a full Redis accepts. It then accepts the others too: without a lease no session
-- works.
redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('SET', KEYS[1], 'alive', 'PX', ARGV[1])
return 1
