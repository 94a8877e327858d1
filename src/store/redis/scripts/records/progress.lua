-- Resets the count of takeovers of a session that has made progress.
--
-- KEYS  1 record
-- ARGV  1 epoch
-- Returns 1 done, 3 fenced, 4 no_record

local known = redis.call('HMGET', KEYS[1], 'epoch', 'ended')
if known[2] then return 3 end
if not known[1] or tonumber(known[1]) < tonumber(ARGV[1]) then return 4 end
if tonumber(known[1]) > tonumber(ARGV[1]) then return 3 end
redis.call('HDEL', KEYS[1], 'takeovers')
return 1
