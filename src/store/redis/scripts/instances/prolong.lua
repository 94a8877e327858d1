-- Renews the lease of an instance and the lifetime of its mailbox, so that no message of a live instance expires.
--
-- KEYS  1 lease, 2 mailbox, 3 bytes ever posted, 4 bytes ever freed
-- ARGV  1 lease in ms, 2 TTL of the mailbox in ms
-- Returns the state of the lease before the call: alive, dead or nil

local state = redis.call('GETEX', KEYS[1], 'PX', ARGV[1])
-- The count of posted bytes must expire first: an `enqueue` that does not find the count starts the mailbox again.
for _, key in ipairs({KEYS[3], KEYS[4], KEYS[2]}) do redis.call('PEXPIRE', key, ARGV[2]) end
return state
