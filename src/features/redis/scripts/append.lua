-- Appends events to a session's log, all or none. The consecutive events of one append are stored in segments. Each
-- segment is one entry, whose id is the position of its last event. So many events need few entries and few arguments.
--
-- KEYS  1 record, 2 log, 3 tails, 4 pending
-- ARGV  1 epoch, 2 expected tail, 3 maxEvents, 4 maxBytes, 5 maxAgeMs, 6 TTL of the log in ms, 7 of the rest in ms,
--       8 number of the last event or '' for none, 9 highest number of a stream among them;
--       10 number of segments, and for each number of its last event, header, data;
--       then number of tails, and for each stream and tail; number of settled requests, and their ids;
--       number of opened requests, and for each id and value
-- Returns {code, tail}: 1 stored, 2 already, 3 fenced, 4 no_record, 5 gap (`tail` is the number of the newest event);
--       {1, tail, number of evicted events} if events were stored

local record, log, tails, pending = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local epoch, expected = tonumber(ARGV[1]), tonumber(ARGV[2])
local last = tonumber(ARGV[8]) or expected
local maxEvents, maxBytes, maxAgeMs = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local known = redis.call('HMGET', record, 'epoch', 'tail', 'newest', 'events', 'bytes', 'ended')
if known[6] then return {3, 0} end
if not known[1] or tonumber(known[1]) < epoch then return {4, 0} end
if tonumber(known[1]) > epoch then return {3, 0} end
local tail = tonumber(known[2])
if tail ~= expected then
  if tail >= last then return {2, tail} end
  return {5, tail}
end
if last == expected then return {1, tail} end

local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local now = string.format('%.0f', nowMs)
local kept, bytes = tonumber(known[4]), tonumber(known[5])
-- An absent log has expired; the tails of its ended streams are then obsolete.
local isFirst = redis.call('EXISTS', log) == 0
local at = 11
for _ = 1, tonumber(ARGV[10]) do
  local header, data = ARGV[at + 1], ARGV[at + 2]
  -- This is the first write of the script. A full Redis refuses it before anything has changed, and refuses no later
  -- write.
  local added = redis.pcall('XADD', log, ARGV[1] .. '-' .. ARGV[at], 'h', now .. ' ' .. header, 'd', data)
  if type(added) == 'table' and added.err then
    -- With ERR, the log has entries after this position, which a newer owner wrote. Any other code is for the caller.
    if string.sub(added.err, 1, 4) == 'ERR ' then return {3, 0} end
    return added
  end
  if isFirst then
    isFirst, kept, bytes = false, 0, 0
    local all = redis.call('HGETALL', tails)
    for i = 1, #all, 2 do
      if string.sub(all[i + 1], -1) == '1' then redis.call('HDEL', tails, all[i]) end
    end
  end
  local events, size = string.match(header, '^(%d+) (%d+) ')
  kept = kept + tonumber(events)
  bytes = bytes + tonumber(size)
  at = at + 3
end
local function each(step, act)
  local number = tonumber(ARGV[at])
  at = at + 1
  for _ = 1, number do
    act(ARGV[at], ARGV[at + 1])
    at = at + step
  end
end
each(2, function(stream, value) redis.call('HSET', tails, stream, value) end)
each(1, function(id) redis.call('HDEL', pending, id) end)
each(2, function(id, value) redis.call('HSET', pending, id, value) end)

-- Evict segments over the limits, oldest first. The loop reads each segment once in its life, and at most a chunk too
-- many.
local firstKept, evicted = nil, 0
local isOver = kept > maxEvents or bytes > maxBytes
if not isOver then
  local oldest = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
  local atMs = oldest and string.match(oldest[2][2], '^(%d+) ')
  isOver = oldest and (oldest[2][1] ~= 'h' or nowMs - tonumber(atMs) > maxAgeMs)
end
while isOver do
  local oldest = redis.call('XRANGE', log, firstKept or '-', '+', 'COUNT', 4)
  if #oldest == 0 then break end
  for _, entry in ipairs(oldest) do
    local fields = entry[2]
    if fields[1] == 'h' then
      local atMs, events, size, streams = string.match(fields[2], '^(%d+) (%d+) (%d+) (.*)$')
      isOver = kept > maxEvents or bytes > maxBytes or nowMs - tonumber(atMs) > maxAgeMs
      if not isOver then
        firstKept = entry[1]
        break
      end
      kept = kept - tonumber(events)
      evicted = evicted + tonumber(events)
      bytes = bytes - tonumber(size)
      for stream in string.gmatch(streams, '(%d+):%d+:1') do redis.call('HDEL', tails, stream) end
    end
    local entryEpoch, entrySeq = string.match(entry[1], '^(%d+)-(%d+)$')
    firstKept = entryEpoch .. '-' .. string.format('%.0f', tonumber(entrySeq) + 1)
  end
end
if firstKept then redis.call('XTRIM', log, 'MINID', firstKept) end

local newest = math.max(tonumber(known[3]), tonumber(ARGV[9]))
redis.call('HSET', record, 'tail', string.format('%.0f', last), 'newest', string.format('%.0f', newest),
  'events', kept, 'bytes', bytes)
redis.call('PEXPIRE', log, ARGV[6])
for _, key in ipairs({record, tails, pending}) do redis.call('PEXPIRE', key, ARGV[7]) end
return {1, last, evicted}
