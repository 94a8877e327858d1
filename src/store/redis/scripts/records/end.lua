-- Ends a session, and remembers under which epoch it has ended.
--
-- KEYS  1 record, 2 log, 3 tails, 4 pending
-- ARGV  1 epoch or '', 2 TTL in ms
-- Returns 1 ended, 2 it is under a newer epoch

local known = redis.call('HMGET', KEYS[1], 'epoch', 'ended')
if known[2] then return 1 end
if ARGV[1] ~= '' and known[1] and tonumber(known[1]) > tonumber(ARGV[1]) then return 2 end
-- First what a full Redis does not refuse; it refuses nothing after that.
redis.call('DEL', unpack(KEYS))
redis.call('HSET', KEYS[1], 'ended', known[1] or (ARGV[1] ~= '' and ARGV[1]) or 0)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
