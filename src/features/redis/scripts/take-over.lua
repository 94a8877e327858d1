-- Takes a session over from an owner that is lost or has released it, by compare-and-set on owner and epoch.
--
-- KEYS  1 record, 2 log, 3 tails, 4 pending
-- ARGV  1 JSON object: `owner` and `epoch` that the caller knows; `newOwner`; `oldest` and `newest`, the versions of records
--         that the caller reads; `maxTakeovers`, the number of takeovers
--         without progress; `freeTakeovers`, the number of them without a pause; `firstPauseMs`, `longestPauseMs`,
--         `windowMs`; `logMs` and `recordMs`, the TTLs of the log and of the rest
-- Returns {code}: 2 moved, 3 unknown, 4 worn_out; {5 paused, pause in ms}; or {1 taken, {field, value, …} of the record,
--       {stream, tail, …}, {id, pending, …}}

local record, log, tails, pending = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local args = cjson.decode(ARGV[1])

local function taken()
  return {1, redis.call('HGETALL', record), redis.call('HGETALL', tails), redis.call('HGETALL', pending)}
end

local known = redis.call('HMGET', record, 'epoch', 'owner', 'ended', 'worn', 'takeovers', 'version')
if known[3] then
  -- This takeover ended the session before, in an attempt of this caller or of another one that knew the same epoch.
  if known[4] and known[4] == args.epoch then return {4} end
  return {3}
end
if not known[1] then return {3} end
local version = tonumber(known[6] or 0)
if version < args.oldest or version > args.newest then return {2} end
if known[1] ~= args.epoch or known[2] ~= args.owner then
  if known[2] == args.newOwner and tonumber(known[1]) > tonumber(args.epoch) then return taken() end
  return {2}
end

local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local takeovers
-- The caller's own takeover, after which it could not read the log, is no further loss of an owner.
if known[2] ~= '' and known[2] ~= args.newOwner then
  local count, lastMs = string.match(known[5] or '', '^(%d+) (%d+)$')
  count = tonumber(count or 0)
  local sinceMs = nowMs - tonumber(lastMs or 0)
  if sinceMs >= args.windowMs then count = 0 end
  if count >= args.maxTakeovers then
    redis.call('DEL', record, log, tails, pending)
    redis.call('HSET', record, 'ended', known[1], 'worn', args.epoch)
    redis.call('PEXPIRE', record, args.recordMs)
    return {4}
  end
  local free = args.freeTakeovers
  local pauseMs = count < free and 0 or math.min(args.firstPauseMs * 2 ^ (count - free), args.longestPauseMs)
  if sinceMs < pauseMs then return {5, pauseMs - sinceMs} end
  takeovers = string.format('%d %.0f', count + 1, nowMs)
end

local epoch = string.format('%.0f', math.max(tonumber(known[1]) + 1, nowMs))
redis.call('HSET', record, 'epoch', epoch, 'owner', args.newOwner, 'tail', 0)
redis.call('HDEL', record, 'term')
if takeovers then redis.call('HSET', record, 'takeovers', takeovers) end
-- The marker: from here on Redis itself refuses entries of an older epoch.
redis.pcall('XADD', log, epoch .. '-0', 'm', '')
redis.call('PEXPIRE', log, args.logMs)
for _, key in ipairs({record, tails, pending}) do redis.call('PEXPIRE', key, args.recordMs) end
return taken()
