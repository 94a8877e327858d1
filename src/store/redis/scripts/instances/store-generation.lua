-- Which life of the data this is, and how old it is.
--
-- KEYS  1 birth
-- ARGV  1 a random word for a new life, 2 TTL in ms
-- Returns {name of this life, age in ms}

local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local birth = redis.call('GET', KEYS[1])
if not birth then
  birth = ARGV[1] .. ':' .. string.format('%.0f', nowMs)
  redis.call('SET', KEYS[1], birth)
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {birth, math.max(0, nowMs - tonumber(string.match(birth, '%d+$')))}
