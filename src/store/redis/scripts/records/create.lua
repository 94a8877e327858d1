-- Stores the record of a new session.
--
-- KEYS  1 record, 2 log, 3 tails, 4 pending
-- ARGV  1 epoch, 2 owner, 3 head, 4 initialize, 5 initialized, 6 clientState, 7 TTL in ms,
--       8 1 if the session may follow an ended one, 9 clientSaid
-- Returns 1 stored, now or by an earlier attempt; 2 another session exists or existed under this key

local known = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'ended')
if known[3] and (ARGV[8] ~= '1' or tonumber(known[3]) >= tonumber(ARGV[1])) then return 2 end
if known[1] then
  if known[1] == ARGV[1] and known[2] == ARGV[2] then return 1 end
  return 2
end
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'owner', ARGV[2], 'head', ARGV[3], 'initialize', ARGV[4],
  'initialized', ARGV[5], 'state', ARGV[6], 'said', ARGV[9], 'tail', 0, 'newest', -1, 'events', 0, 'bytes', 0)
redis.call('HDEL', KEYS[1], 'ended', 'worn', 'takeovers', 'term')
redis.call('PEXPIRE', KEYS[1], ARGV[7])
redis.call('DEL', KEYS[2], KEYS[3], KEYS[4])
return 1
