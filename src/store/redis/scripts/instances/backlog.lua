-- What a mailbox holds that was not handed out.
--
-- KEYS  1 mailbox, 2 bytes ever posted
-- ARGV  1 the id of the last entry that was handed out, 0-0 for none; 2 the bytes ever posted up to it
-- Returns {bytes, for how many ms the oldest entry has been waiting}

local oldest = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', 1)[1]
if not oldest then return {0, 0} end
local time = redis.call('TIME')
local waitingMs = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(string.match(oldest[1], '^(%d+)-'))
local posted = tonumber(redis.call('GET', KEYS[2]) or 0)
return {math.max(0, posted - tonumber(ARGV[2])), math.max(0, waitingMs)}
