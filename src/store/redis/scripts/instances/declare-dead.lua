-- Makes sure that an instance without a lease never gets one again: a renewal of 'dead' has lost.
--
-- KEYS  1 lease
-- ARGV  1 TTL in ms
-- Returns 1 it is dead, 0 it holds its lease

if redis.call('GET', KEYS[1]) == 'alive' then return 0 end
redis.call('SET', KEYS[1], 'dead', 'PX', ARGV[1])
return 1
