-- Measures the undelivered messages of a mailbox.
--
-- KEYS  1 mailbox, 2 bytes ever posted
-- ARGV  1 id of the last delivered entry, 0-0 for none; 2 bytes ever posted up to that entry
-- Returns {bytes, waiting time of the oldest entry in ms}

local oldest = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', 1)[1]
if not oldest then return {0, 0} end
local time = redis.call('TIME')
local waitingMs = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(string.match(oldest[1], '^(%d+)-'))
local posted = tonumber(redis.call('GET', KEYS[2]) or 0)
return {math.max(0, posted - tonumber(ARGV[2])), math.max(0, waitingMs)}
