-- Keeps a session from expiring: one command, where its three keys would be three. Not its log, whose events age whoever owns it.
--
-- KEYS  1 record, 2 tails, 3 pending
-- ARGV  1 TTL in ms
-- Returns nothing that matters

for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[1]) end
return 1
