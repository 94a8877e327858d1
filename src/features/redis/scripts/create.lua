-- Stores the record of a new session.
--
-- KEYS  1 record, 2 log, 3 tails, 4 pending
-- ARGV  1 JSON object: `epoch` and `owner` of the record; `recordMs`, the TTL; `followsEnded`, true if the session may
--         follow an ended one;
--       then the name and value of each field of the record
-- Returns 1 stored, now or by an earlier attempt; 2 another session exists or existed under this key

local args = cjson.decode(ARGV[1])
local known = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'ended')
if known[3] and not (args.followsEnded and tonumber(known[3]) < tonumber(args.epoch)) then return 2 end
if known[1] then
  if known[1] == args.epoch and known[2] == args.owner then return 1 end
  return 2
end
redis.call('HSET', KEYS[1], 'tail', 0, 'newest', -1, 'events', 0, 'bytes', 0, unpack(ARGV, 2))
redis.call('HDEL', KEYS[1], 'ended', 'worn', 'takeovers', 'term')
redis.call('PEXPIRE', KEYS[1], args.recordMs)
redis.call('DEL', KEYS[2], KEYS[3], KEYS[4])
return 1
