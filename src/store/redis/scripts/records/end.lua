-- Ends a session and remembers the epoch under which it ended.
--
-- KEYS  1 record, 2 log, 3 tails, 4 pending
-- ARGV  1 epoch or '', 2 TTL in ms
-- Returns 1 ended, 2 the session is under a newer epoch

local known = redis.call('HMGET', KEYS[1], 'epoch', 'ended')
if known[2] then return 1 end
if ARGV[1] ~= '' and known[1] and tonumber(known[1]) > tonumber(ARGV[1]) then return 2 end
-- The first write must be one that a full Redis accepts. It then accepts the others too.
redis.call('DEL', unpack(KEYS))
redis.call('HSET', KEYS[1], 'ended', known[1] or (ARGV[1] ~= '' and ARGV[1]) or 0)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
