-- Appends events to a session's log, all or none.
--
-- KEYS  1 record, 2 log, 3 tails, 4 pending
-- ARGV  1 epoch, 2 expected tail, 3 maxEvents, 4 maxBytes, 5 maxAgeMs, 6 TTL of the log in ms, 7 of the rest in ms,
--       8 number of events; then for each event: stream, 1 if it is the stream's last, previous place or '', data,
--       id of the request it settles or '', number of requests it opens, and for each of those id and value
-- Returns {code, tail}: 1 stored, 2 already, 3 fenced, 4 no_record, 5 gap (then `tail` is the newest event's number)

local record, log, tails, pending = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local epoch, expected, count = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[8])
local maxEvents, maxBytes, maxAgeMs = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local known = redis.call('HMGET', record, 'epoch', 'tail', 'newest', 'events', 'bytes', 'ended')
if known[6] then return {3, 0} end
if not known[1] or tonumber(known[1]) < epoch then return {4, 0} end
if tonumber(known[1]) > epoch then return {3, 0} end
local tail = tonumber(known[2])
if tail ~= expected then
  if tail >= expected + count then return {2, tail} end
  return {5, tail}
end
if count == 0 then return {1, tail} end

local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local now = string.format('%.0f', nowMs)
local newest, kept, bytes = tonumber(known[3]), tonumber(known[4]), tonumber(known[5])
-- The log has expired, and with it what told of its ended streams.
local isFirst = redis.call('EXISTS', log) == 0
local newTails = {}
local at = 9
for index = 1, count do
  local stream, last, previous, data, settles = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local opens = tonumber(ARGV[at + 5])
  at = at + 6
  local place = ARGV[1] .. '-' .. string.format('%.0f', expected + index)
  -- The first write of the script: a full Redis refuses it, and then nothing was done; it does not refuse the others.
  local added = redis.pcall('XADD', log, place, 'h', stream .. ' ' .. last .. ' ' .. now .. ' ' .. previous, 'd', data)
  if type(added) == 'table' and added.err then
    -- The log has entries behind this place, so a newer owner's; any other code is for the caller.
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
  newTails[stream] = place .. ' ' .. last
  newest = math.max(newest, tonumber(stream))
  kept = kept + 1
  bytes = bytes + #data
  if settles ~= '' then redis.call('HDEL', pending, settles) end
  for _ = 1, opens do
    redis.call('HSET', pending, ARGV[at], ARGV[at + 1])
    at = at + 2
  end
end
for stream, value in pairs(newTails) do redis.call('HSET', tails, stream, value) end

-- What is over the limits, oldest first. Each event is evicted once in its life; the first chunk is what is over the
-- number, and the one behind it, whose age decides.
local firstKept
local isOver = true
local chunk = math.max(1, math.min(64, kept - maxEvents + 1))
while isOver do
  local oldest = redis.call('XRANGE', log, firstKept or '-', '+', 'COUNT', chunk)
  chunk = math.min(64, chunk * 4)
  if #oldest == 0 then break end
  for _, entry in ipairs(oldest) do
    local fields = entry[2]
    if fields[1] == 'h' then
      local stream, last, atMs = string.match(fields[2], '^(%d+) (%d) (%d+) ')
      isOver = kept > maxEvents or bytes > maxBytes or nowMs - tonumber(atMs) > maxAgeMs
      if not isOver then
        firstKept = entry[1]
        break
      end
      kept = kept - 1
      bytes = bytes - #fields[4]
      if last == '1' then redis.call('HDEL', tails, stream) end
    end
    local entryEpoch, entrySeq = string.match(entry[1], '^(%d+)-(%d+)$')
    firstKept = entryEpoch .. '-' .. string.format('%.0f', tonumber(entrySeq) + 1)
  end
end
if firstKept then redis.call('XTRIM', log, 'MINID', firstKept) end

redis.call('HSET', record, 'tail', string.format('%.0f', expected + count), 'newest', string.format('%.0f', newest),
  'events', kept, 'bytes', bytes)
redis.call('PEXPIRE', log, ARGV[6])
for _, key in ipairs({record, tails, pending}) do redis.call('PEXPIRE', key, ARGV[7]) end
return {1, expected + count}
