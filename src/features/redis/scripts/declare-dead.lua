-- Ensures that an instance without a lease never gets one again: a renewal that reads 'dead' has lost the lease.
--
-- KEYS  1 lease
-- ARGV  1 TTL in ms
-- Returns 1 the instance is dead, 0 the instance holds its lease

if redis.call('GET', KEYS[1]) == 'alive' then return 0 end
redis.call('SET', KEYS[1], 'dead', 'PX', ARGV[1])
return 1
