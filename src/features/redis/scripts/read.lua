-- Reads the segments that contain events of one stream after a position, and the state of the stream at the same
-- moment. Writes nothing.
--
-- KEYS  1 record, 2 log, 3 tails
-- ARGV  1 stream, 2 and 3 epoch and number of the position or '', 4 number of events that is enough,
--       5 bytes that are enough (at least one segment is returned), 6 maxAgeMs
-- Returns {code, newest position, 1 if the stream has ended, position, header, data, position, header, data, …}:
--       1 ok, 2 ok but all events of the stream are forgotten, 3 unknown_stream, 4 in_future

local record, log, tails = KEYS[1], KEYS[2], KEYS[3]
local stream, limit, maxBytes, maxAgeMs = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local afterEpoch, afterSeq = tonumber(ARGV[2]), tonumber(ARGV[3])

local known = redis.call('HMGET', record, 'epoch', 'tail', 'newest', 'ended')
if known[4] or not known[1] then return {3} end

local function isAfter(epoch, seq, otherEpoch, otherSeq)
  return epoch > otherEpoch or (epoch == otherEpoch and seq > otherSeq)
end
local function parsePosition(text)
  local epoch, seq = string.match(text, '^(%d+)%-(%d+)')
  return tonumber(epoch), tonumber(seq)
end
local time = redis.call('TIME')
local oldestMs = time[1] * 1000 + math.floor(time[2] / 1000) - maxAgeMs

--- Returns how many events of the stream a segment has; nil if it has none, is too old, or is a marker.
local function eventsIn(entry)
  local fields = entry[2]
  if fields[1] ~= 'h' then return nil end
  local atMs = string.match(fields[2], '^(%d+) ')
  return tonumber(atMs) >= oldestMs and tonumber(string.match(fields[2], ' ' .. stream .. ':(%d+):'))
end

local function forgotten()
  -- The GET stream, 0, never ends, so its tail is never forgotten.
  if stream == '0' or tonumber(stream) > tonumber(known[3]) then return {3} end
  if afterEpoch and isAfter(afterEpoch, afterSeq, tonumber(known[1]), tonumber(known[2])) then return {4} end
  return {2}
end

local tail = redis.call('HGET', tails, stream)
if not tail then return forgotten() end
local newest, ended = string.match(tail, '^(%S+) (%d)$')
local newestEpoch, newestSeq = parsePosition(newest)

--- Returns true for an ended stream whose last event is no longer kept: the stream is forgotten with that event.
local function isForgotten()
  if ended ~= '1' then return false end
  local entry = redis.call('XRANGE', log, newest, '+', 'COUNT', 1)[1]
  return not entry or not eventsIn(entry)
end
if afterEpoch and isAfter(afterEpoch, afterSeq, newestEpoch, newestSeq) then
  if isForgotten() then return forgotten() end
  return {4}
end

local reply = {1, newest, tonumber(ended)}
local from = '-'
if afterEpoch then from = '(' .. ARGV[2] .. '-' .. ARGV[3] end
-- The first segment may contain the position itself and no event of the stream after it. So it is returned, not
-- counted.
local isFirst = afterEpoch ~= nil
local found, bytes = 0, 0
local chunk = 4
while from do
  local entries = redis.call('XRANGE', log, from, '+', 'COUNT', chunk)
  from = #entries == chunk and '(' .. entries[#entries][1] or nil
  chunk = 16
  for _, entry in ipairs(entries) do
    local events = eventsIn(entry)
    if events then
      reply[#reply + 1] = entry[1]
      reply[#reply + 1] = entry[2][2]
      reply[#reply + 1] = entry[2][4]
      if not isFirst then
        found = found + events
        bytes = bytes + #entry[2][4]
      end
      if found >= limit or bytes >= maxBytes then return reply end
    end
    isFirst = false
    local epoch, seq = parsePosition(entry[1])
    if not isAfter(newestEpoch, newestSeq, epoch, seq) then
      from = nil
      break
    end
  end
end
if #reply == 3 and isForgotten() then return forgotten() end
return reply
