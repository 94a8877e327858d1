-- The events of one stream behind a place, and what is known of the stream, all of one moment. Writes nothing.
--
-- KEYS  1 record, 2 log, 3 tails
-- ARGV  1 stream, 2 and 3 epoch and number of the place or '', 4 most events, 5 most bytes (one event is always given),
--       6 maxAgeMs
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

local reply = {1, newest, tonumber(ended)}
local from = '-'
if afterEpoch then from = '(' .. ARGV[2] .. '-' .. ARGV[3] end
local found, bytes = 0, 0
local lastEpoch, lastSeq
local chunk = math.min(limit, 16)
while from do
  local entries = redis.call('XRANGE', log, from, newest, 'COUNT', chunk)
  from = #entries == chunk and '(' .. entries[#entries][1] or nil
  chunk = 64
  for _, entry in ipairs(entries) do
    local fields = entry[2]
    if fields[1] == 'h' then
      local entryStream, atMs, previous = string.match(fields[2], '^(%d+) %d (%d+) (.*)$')
      if entryStream == stream and tonumber(atMs) >= oldestMs then
        if lastEpoch and previous ~= '' then
          -- The one before it was never stored: the next read begins here, and tells the break.
          local previousEpoch, previousSeq = placeOf(previous)
          if isBehind(previousEpoch, previousSeq, lastEpoch, lastSeq) then return reply end
        end
        lastEpoch, lastSeq = placeOf(entry[1])
        reply[#reply + 1] = entry[1]
        reply[#reply + 1] = fields[2]
        reply[#reply + 1] = fields[4]
        found = found + 1
        bytes = bytes + #fields[4]
        if found >= limit or bytes >= maxBytes then return reply end
      end
    end
  end
end
if found > 0 then return reply end
if ended == '1' then
  -- An ended stream is forgotten with its last event.
  local entry = redis.call('XRANGE', log, newest, newest)[1]
  local atMs = entry and entry[2][1] == 'h' and string.match(entry[2][2], '^%d+ %d (%d+) ')
  if not atMs or tonumber(atMs) < oldestMs then return forgotten() end
end
if afterEpoch and isBehind(afterEpoch, afterSeq, newestEpoch, newestSeq) then return {4} end
return reply
