-- Keeps a session from expiring, with one command for its three keys. The log is not renewed: events age anyway.
--
-- KEYS  1 record, 2 tails, 3 pending
-- ARGV  1 TTL in ms
-- Returns 1

for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[1]) end
return 1
