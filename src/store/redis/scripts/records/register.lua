-- Registers a session that its owner owns again. The higher epoch wins.
--
-- KEYS  1 record, 2 log, 3 tails, 4 pending
-- ARGV  1 epoch, 2 owner, 3 head, 4 initialize, 5 initialized, 6 clientState, 7 tail, 8 newest stream,
--       9 TTL of the log in ms, 10 of the rest in ms, 11 number of tails, then stream and value of each,
--       then number of pending requests, then id and value of each, then clientSaid, the caller's term, and
--       the time of Redis in ms until which the caller replaces a record of a lower epoch; empty: without limit
-- Returns 1 registered, 2 fenced, 3 ended, 4 outdated

local record, log, tails, pending = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local epoch = tonumber(ARGV[1])
local known = redis.call('HMGET', record, 'epoch', 'ended', 'term')
local term = ARGV[#ARGV - 1]
if known[2] then return 3 end
if known[1] and tonumber(known[1]) > epoch then return 2 end
if known[1] and tonumber(known[1]) < epoch and ARGV[#ARGV] ~= '' then
  local time = redis.call('TIME')
  if time[1] * 1000 + time[2] / 1000 >= tonumber(ARGV[#ARGV]) then return 2 end
end
if known[1] and tonumber(known[1]) == epoch then
  if known[3] and tonumber(known[3]) > tonumber(term) then return 4 end
  -- The first write must be one that a full Redis accepts. Without a registration the owner may not serve the session.
  for _, key in ipairs({record, tails, pending}) do redis.call('PEXPIRE', key, ARGV[10]) end
  redis.call('HSET', record, 'owner', ARGV[2], 'term', term)
  return 1
end

-- A log without a record shows whether a newer owner wrote it: Redis keeps the last entry's id even after its eviction.
if not known[1] and redis.call('EXISTS', log) == 1 then
  local info = redis.call('XINFO', 'STREAM', log)
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' and tonumber(string.match(info[i + 1], '^%d+')) > epoch then return 2 end
  end
end

redis.call('HSET', record, 'epoch', ARGV[1], 'owner', ARGV[2], 'head', ARGV[3], 'initialize', ARGV[4],
  'initialized', ARGV[5], 'state', ARGV[6], 'said', ARGV[#ARGV - 2], 'tail', ARGV[7], 'newest', ARGV[8],
  'term', term)
if not known[1] then
  -- The rest of a log whose record is lost can no longer be counted.
  redis.call('DEL', log)
  redis.call('HSET', record, 'events', 0, 'bytes', 0)
end
redis.call('DEL', tails, pending)
-- The marker: from here on Redis itself refuses older entries. The write fails if the log is further than this owner
-- knows.
redis.pcall('XADD', log, ARGV[1] .. '-' .. ARGV[7], 'm', '')
local at = 12
for _ = 1, tonumber(ARGV[11]) do
  local stream, value = ARGV[at], ARGV[at + 1]
  at = at + 2
  -- The tail of an ended stream is removed with its last event. Without that event the tail would stay for ever.
  local position, ended = string.match(value, '^(%S+) (%d)$')
  local entry = ended == '1' and redis.call('XRANGE', log, position, '+', 'COUNT', 1)[1]
  if ended == '0' or (entry and string.find(entry[2][2], ' ' .. stream .. ':', 1, true)) then
    redis.call('HSET', tails, stream, value)
  end
end
local calls = tonumber(ARGV[at])
for i = at + 1, at + calls * 2, 2 do redis.call('HSET', pending, ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', log, ARGV[9])
for _, key in ipairs({record, tails, pending}) do redis.call('PEXPIRE', key, ARGV[10]) end
return 1
