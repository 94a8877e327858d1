-- Takes a session over from a lost or releasing owner, by compare-and-set on owner and epoch.
--
-- KEYS  1 record, 2 log, 3 tails, 4 pending
-- ARGV  1 owner and 2 epoch that the caller knows, 3 the new owner, 4 most takeovers in 5 a window in ms,
--       6 TTL of the log in ms, 7 of the rest in ms
-- Returns {code}: 2 moved, 3 unknown, 4 worn_out; or {1 taken, epoch, owner, head, initialize, initialized, clientState,
--       newest stream, {stream, tail, …}, {id, pending, …}}

local record, log, tails, pending = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local fields = {'epoch', 'owner', 'head', 'initialize', 'initialized', 'state', 'newest'}

local function taken()
  local reply = redis.call('HMGET', record, unpack(fields))
  table.insert(reply, 1, 1)
  reply[#reply + 1] = redis.call('HGETALL', tails)
  reply[#reply + 1] = redis.call('HGETALL', pending)
  return reply
end

local known = redis.call('HMGET', record, 'epoch', 'owner', 'ended', 'worn', 'taken')
if known[3] then
  -- The caller's own lost reply, or that of another who knew the same.
  if known[4] and known[4] == ARGV[2] then return {4} end
  return {3}
end
if not known[1] then return {3} end
if known[1] ~= ARGV[2] or known[2] ~= ARGV[1] then
  if known[2] == ARGV[3] and tonumber(known[1]) > tonumber(ARGV[2]) then return taken() end
  return {2}
end

local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local times = {}
if known[2] ~= '' then
  for atMs in string.gmatch(known[5] or '', '%d+') do
    if nowMs - tonumber(atMs) < tonumber(ARGV[5]) then times[#times + 1] = atMs end
  end
  if #times >= tonumber(ARGV[4]) then
    redis.call('DEL', record, log, tails, pending)
    redis.call('HSET', record, 'ended', known[1], 'worn', ARGV[2])
    redis.call('PEXPIRE', record, ARGV[7])
    return {4}
  end
  times[#times + 1] = string.format('%.0f', nowMs)
end

local epoch = string.format('%.0f', math.max(tonumber(known[1]) + 1, nowMs))
redis.call('HSET', record, 'epoch', epoch, 'owner', ARGV[3], 'tail', 0)
redis.call('HDEL', record, 'term')
if known[2] ~= '' then redis.call('HSET', record, 'taken', table.concat(times, ' ')) end
-- The marker: from here on Redis itself refuses entries of an older epoch.
redis.pcall('XADD', log, epoch .. '-0', 'm', '')
redis.call('PEXPIRE', log, ARGV[6])
for _, key in ipairs({record, tails, pending}) do redis.call('PEXPIRE', key, ARGV[7]) end
return taken()
