-- Announces a change to all subscribers.
--
-- KEYS  1 changes
-- ARGV  1 maximum number of kept entries, 2 TTL in ms, 3 topic, 4 text
-- Returns the number of the change: one more than that of the change before, so that a reader notices a hole

local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
-- The fields of an entry are n (number), t (topic) and d (text).
local number = last and tonumber(last[2][2]) + 1 or 1
local text = string.format('%.0f', number)
redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[1], '*', 'n', text, 't', ARGV[3], 'd', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return number
