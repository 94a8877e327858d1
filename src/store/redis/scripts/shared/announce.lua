-- Tells all who follow of a change.
--
-- KEYS  1 changes
-- ARGV  1 most entries that are kept, 2 TTL in ms, 3 topic, 4 text
-- Returns the number of the change: each is one more than that before it, so that who reads sees a hole

local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
-- An entry is n, number, t, topic, d, text.
local number = last and tonumber(last[2][2]) + 1 or 1
local text = string.format('%.0f', number)
redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[1], '*', 'n', text, 't', ARGV[3], 'd', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return number
