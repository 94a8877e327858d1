-- Takes a session over from an owner that is lost or has released it, by compare-and-set on owner and epoch.
--
-- KEYS  1 record, 2 log, 3 tails, 4 pending
-- ARGV  1 owner and 2 epoch that the caller knows, 3 the new owner, 4 maximum number of takeovers without progress,
--       5 number of takeovers without a pause, 6 first pause in ms, 7 longest pause in ms, 8 window in ms,
--       9 TTL of the log in ms, 10 TTL of the rest in ms
-- Returns {code}: 2 moved, 3 unknown, 4 worn_out; {5 paused, pause in ms}; or {1 taken, epoch, owner, head, initialize,
--       initialized, clientState, clientSaid, newest stream, {stream, tail, …}, {id, pending, …}}

local record, log, tails, pending = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local fields = {'epoch', 'owner', 'head', 'initialize', 'initialized', 'state', 'said', 'newest'}

local function taken()
  local reply = redis.call('HMGET', record, unpack(fields))
  table.insert(reply, 1, 1)
  reply[#reply + 1] = redis.call('HGETALL', tails)
  reply[#reply + 1] = redis.call('HGETALL', pending)
  return reply
end

local known = redis.call('HMGET', record, 'epoch', 'owner', 'ended', 'worn', 'takeovers')
if known[3] then
  -- This takeover ended the session before, in an attempt of this caller or of another one that knew the same epoch.
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
local takeovers
-- The caller's own takeover, after which it could not read the log, is no further loss of an owner.
if known[2] ~= '' and known[2] ~= ARGV[3] then
  local count, lastMs = string.match(known[5] or '', '^(%d+) (%d+)$')
  count = tonumber(count or 0)
  local sinceMs = nowMs - tonumber(lastMs or 0)
  if sinceMs >= tonumber(ARGV[8]) then count = 0 end
  if count >= tonumber(ARGV[4]) then
    redis.call('DEL', record, log, tails, pending)
    redis.call('HSET', record, 'ended', known[1], 'worn', ARGV[2])
    redis.call('PEXPIRE', record, ARGV[10])
    return {4}
  end
  local free = tonumber(ARGV[5])
  local pauseMs = count < free and 0 or math.min(ARGV[6] * 2 ^ (count - free), tonumber(ARGV[7]))
  if sinceMs < pauseMs then return {5, pauseMs - sinceMs} end
  takeovers = string.format('%d %.0f', count + 1, nowMs)
end

local epoch = string.format('%.0f', math.max(tonumber(known[1]) + 1, nowMs))
redis.call('HSET', record, 'epoch', epoch, 'owner', ARGV[3], 'tail', 0)
redis.call('HDEL', record, 'term')
if takeovers then redis.call('HSET', record, 'takeovers', takeovers) end
-- The marker: from here on Redis itself refuses entries of an older epoch.
redis.pcall('XADD', log, epoch .. '-0', 'm', '')
redis.call('PEXPIRE', log, ARGV[9])
for _, key in ipairs({record, tails, pending}) do redis.call('PEXPIRE', key, ARGV[10]) end
return taken()
