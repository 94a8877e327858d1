-- Renews the lease of an instance, and with it the time of its mailbox: one that lives loses no letter to it.
--
-- KEYS  1 lease, 2 mailbox, 3 bytes ever posted, 4 bytes ever freed
-- ARGV  1 lease in ms, 2 TTL of the mailbox in ms
-- Returns the state of the lease as it was: alive, dead or nothing

local state = redis.call('GETEX', KEYS[1], 'PX', ARGV[1])
-- In this order, so that what was posted is gone first: a post that does not find it begins anew.
for _, key in ipairs({KEYS[3], KEYS[4], KEYS[2]}) do redis.call('PEXPIRE', key, ARGV[2]) end
return state
