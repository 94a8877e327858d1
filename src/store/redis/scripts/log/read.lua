-- The segments that hold events of one stream behind a place, and what is known of the stream, all of one moment. Writes
-- nothing.
--
-- KEYS  1 record, 2 log, 3 tails
-- ARGV  1 stream, 2 and 3 epoch and number of the place or '', 4 events that are enough, 5 bytes that are enough (one segment
--       is always given), 6 maxAgeMs
-- Returns {code, newest place, 1 if the stream has ended, place, header, data, place, header, data, …}:
--       1 ok, 2 ok but all of the stream is forgotten, 3 unknown_stream, 4 in_future

local record, log, tails = KEYS[1], KEYS[2], KEYS[3]
local stream, limit, maxBytes, maxAgeMs = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local afterEpoch, afterSeq = tonumber(ARGV[2]), tonumber(ARGV[3])

local known = redis.call('HMGET', record, 'epoch', 'tail', 'newest', 'ended')
if known[4] or not known[1] then return {3} end

local function isBehind(epoch, seq, otherEpoch, otherSeq)
  return epoch > otherEpoch or (epoch == otherEpoch and seq > otherSeq)
end
local function placeOf(text)
  local epoch, seq = string.match(text, '^(%d+)%-(%d+)')
  return tonumber(epoch), tonumber(seq)
end
local time = redis.call('TIME')
local oldestMs = time[1] * 1000 + math.floor(time[2] / 1000) - maxAgeMs

--- How many events of the stream a segment has; nil for none, and for one that is too old or a marker.
local function eventsIn(entry)
  local fields = entry[2]
  if fields[1] ~= 'h' then return nil end
  local atMs = string.match(fields[2], '^(%d+) ')
  return tonumber(atMs) >= oldestMs and tonumber(string.match(fields[2], ' ' .. stream .. ':(%d+):'))
end

local function forgotten()
  -- The GET stream, 0, never ends, so its tail is never forgotten.
  if stream == '0' or tonumber(stream) > tonumber(known[3]) then return {3} end
  if afterEpoch and isBehind(afterEpoch, afterSeq, tonumber(known[1]), tonumber(known[2])) then return {4} end
  return {2}
end

local tail = redis.call('HGET', tails, stream)
if not tail then return forgotten() end
local newest, ended = string.match(tail, '^(%S+) (%d)$')
local newestEpoch, newestSeq = placeOf(newest)

--- True for an ended stream whose last event is no longer kept: it is forgotten with it.
local function isForgotten()
  if ended ~= '1' then return false end
  local entry = redis.call('XRANGE', log, newest, '+', 'COUNT', 1)[1]
  return not entry or not eventsIn(entry)
end
if afterEpoch and isBehind(afterEpoch, afterSeq, newestEpoch, newestSeq) then
  if isForgotten() then return forgotten() end
  return {4}
end

local reply = {1, newest, tonumber(ended)}
local from = '-'
if afterEpoch then from = '(' .. ARGV[2] .. '-' .. ARGV[3] end
-- The first segment may hold the place itself, and nothing of the stream behind it: it is given and not counted.
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
    local epoch, seq = placeOf(entry[1])
    if not isBehind(newestEpoch, newestSeq, epoch, seq) then
      from = nil
      break
    end
  end
end
if #reply == 3 and isForgotten() then return forgotten() end
return reply
