-- Keeps the outcome of a round of a call unless the round has one, and renews the lifetime of all outcomes of the call.
--
-- KEYS  1 outcomes of the call
-- ARGV  1 round, 2 outcome, 3 TTL in ms
-- Returns 1

redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
