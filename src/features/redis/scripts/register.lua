-- Registers a session that its owner owns again. The higher epoch wins.
--
-- KEYS  1 record, 2 log, 3 tails, 4 pending
-- ARGV  1 JSON object: `epoch` and `owner` of the record; `term` of the caller; `displacesUntilMs`, the time of Redis
--         until which the caller replaces a record of a lower epoch, absent without limit; `tail`, the number of the
--         newest event; `newest`, the highest number of a stream; `logMs` and `recordMs`, the TTLs of the log and of the
--         rest; `fields`, `tails` and `pending`, the numbers of arguments that follow;
--       then the name and value of each field of the record, the stream and value of each tail, and the id and value of
--         each pending request
-- Returns 1 registered, 2 fenced, 3 ended, 4 outdated

local record, log, tails, pending = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local args = cjson.decode(ARGV[1])
local epoch = tonumber(args.epoch)
local known = redis.call('HMGET', record, 'epoch', 'ended', 'term')
if known[2] then return 3 end
if known[1] and tonumber(known[1]) > epoch then return 2 end
if known[1] and tonumber(known[1]) < epoch and args.displacesUntilMs then
  local time = redis.call('TIME')
  if time[1] * 1000 + time[2] / 1000 >= tonumber(args.displacesUntilMs) then return 2 end
end
if known[1] and tonumber(known[1]) == epoch then
  if known[3] and tonumber(known[3]) > tonumber(args.term) then return 4 end
  -- The first write must be one that a full Redis accepts. Without a registration the owner may not serve the session.
  for _, key in ipairs({record, tails, pending}) do redis.call('PEXPIRE', key, args.recordMs) end
  redis.call('HSET', record, 'owner', args.owner, 'term', args.term)
  return 1
end

-- A log without a record shows whether a newer owner wrote it: Redis keeps the last entry's id even after its eviction.
if not known[1] and redis.call('EXISTS', log) == 1 then
  local info = redis.call('XINFO', 'STREAM', log)
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' and tonumber(string.match(info[i + 1], '^%d+')) > epoch then return 2 end
  end
end

local at = 2
--- Returns the next arguments of this number.
local function take(count)
  at = at + count
  return unpack(ARGV, at - count, at - 1)
end
redis.call('HSET', record, 'tail', args.tail, 'newest', args.newest, 'term', args.term, take(args.fields))
if not known[1] then
  -- The rest of a log whose record is lost can no longer be counted.
  redis.call('DEL', log)
  redis.call('HSET', record, 'events', 0, 'bytes', 0)
end
redis.call('DEL', tails, pending)
-- The marker: from here on Redis itself refuses older entries. The write fails if the log is further than this owner
-- knows.
redis.pcall('XADD', log, args.epoch .. '-' .. args.tail, 'm', '')
for _ = 1, args.tails / 2 do
  local stream, value = take(2)
  -- The tail of an ended stream is removed with its last event. Without that event the tail would stay for ever.
  local position, ended = string.match(value, '^(%S+) (%d)$')
  local entry = ended == '1' and redis.call('XRANGE', log, position, '+', 'COUNT', 1)[1]
  if ended == '0' or (entry and string.find(entry[2][2], ' ' .. stream .. ':', 1, true)) then
    redis.call('HSET', tails, stream, value)
  end
end
for _ = 1, args.pending / 2 do redis.call('HSET', pending, take(2)) end
redis.call('PEXPIRE', log, args.logMs)
for _, key in ipairs({record, tails, pending}) do redis.call('PEXPIRE', key, args.recordMs) end
return 1
