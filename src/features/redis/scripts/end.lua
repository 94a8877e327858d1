-- Ends a session and remembers the epoch under which it ended.
--
-- KEYS  1 record, 2 log, 3 tails, 4 pending
-- ARGV  1 JSON object: `epoch` of the owner, absent if the owner is not known; `recordMs`, the TTL
-- Returns 1 ended, 2 the session is under a newer epoch

local args = cjson.decode(ARGV[1])
local known = redis.call('HMGET', KEYS[1], 'epoch', 'ended')
if known[2] then return 1 end
if args.epoch and known[1] and tonumber(known[1]) > tonumber(args.epoch) then return 2 end
-- The first write must be one that a full Redis accepts. It then accepts the others too.
redis.call('DEL', unpack(KEYS))
redis.call('HSET', KEYS[1], 'ended', known[1] or args.epoch or 0)
redis.call('PEXPIRE', KEYS[1], args.recordMs)
return 1
