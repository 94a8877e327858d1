-- Reserves an amount for an item, in place of what it had. Items whose time is over count no more.
--
-- The hash has a field for each item: its amount, and when its time is over, in ms. The field `all` has the sum of the
-- amounts, a time before which no item is over, the number of items, and a time after which all are over. So the items are
-- only walked when there seems to be no room, and not again before one of them can be over.
--
-- KEYS  1 reserved
-- ARGV  1 item, 2 amount, 3 lifetime in ms, 4 most items, 5 most of all amounts
-- Returns 1, or 0 if there is no room

local key, item = KEYS[1], ARGV[1]
local amount, ttl = tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function numbers(field)
  local found = {}
  for number in string.gmatch(redis.call('HGET', key, field) or '', '%d+') do found[#found + 1] = tonumber(number) end
  return found
end

local all, earlier = numbers('all'), numbers(item)[1]
local sum, overAt, items, endsAt = all[1] or 0, all[2] or math.huge, all[3] or 0, math.max(all[4] or 0, now + ttl)

local function fits()
  local others = earlier and items - 1 or items
  return others < tonumber(ARGV[4]) and sum - (earlier or 0) + amount <= tonumber(ARGV[5])
end

if not fits() and overAt <= now then
  sum, overAt, items = 0, math.huge, 0
  local fields = redis.call('HGETALL', key)
  for n = 1, #fields, 2 do
    local taken, over = string.match(fields[n + 1], '^(%d+) (%d+)$')
    taken, over = tonumber(taken), tonumber(over)
    if over and over > now then
      sum, overAt, items = sum + taken, math.min(overAt, over), items + 1
    elseif over then
      redis.call('HDEL', key, fields[n])
      if fields[n] == item then earlier = nil end
    end
  end
end

local isReserved = fits() or (earlier and amount <= earlier)
if isReserved then
  sum, overAt, items = sum - (earlier or 0) + amount, math.min(overAt, now + ttl), earlier and items or items + 1
  redis.call('HSET', key, item, string.format('%.0f %.0f', amount, now + ttl))
end
redis.call('HSET', key, 'all', string.format('%.0f %.0f %.0f %.0f', sum, math.min(overAt, now + ttl), items, endsAt))
redis.call('PEXPIRE', key, endsAt - now)
return isReserved and 1 or 0
