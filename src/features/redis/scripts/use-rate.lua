-- Adds a cost to the debt of a rate, which is paid off as time passes.
--
-- KEYS  1 rate: the time at which the debt will be paid, in µs
-- ARGV  1 cost in µs
-- Returns the debt in µs

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local paid = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now) + tonumber(ARGV[1])
redis.call('SET', KEYS[1], string.format('%.0f', paid), 'PX', math.ceil((paid - now) / 1000) + 1)
return paid - now
