-- Reads the name and the age of this generation of the store's data. An empty store gets a new generation.
--
-- KEYS  1 name of the generation
-- ARGV  1 random text for a new generation, 2 TTL in ms
-- Returns {name, age in ms, time of Redis in ms}

local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local birth = redis.call('GET', KEYS[1])
if not birth then
  birth = ARGV[1] .. ':' .. string.format('%.0f', nowMs)
  redis.call('SET', KEYS[1], birth)
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {birth, math.max(0, nowMs - tonumber(string.match(birth, '%d+$'))), nowMs}
