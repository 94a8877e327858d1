-- Changes a record, and keeps it from expiring with its tails and pending requests. The log is not renewed: events age
-- anyway.
--
-- KEYS  1 record, 2 tails, 3 pending
-- ARGV  1 JSON object: `epoch` of the owner, absent for a change that any instance may make; `recordMs`, the TTL;
--         `removes`, a field that is removed; `mustFit`, true if the change must succeed in a full Redis;
--       then the name and value of each field that is set
-- Returns 1 done, 3 fenced, 4 no_record

local args = cjson.decode(ARGV[1])
if args.epoch then
  local known = redis.call('HMGET', KEYS[1], 'epoch', 'ended')
  if known[2] then return 3 end
  if not known[1] or tonumber(known[1]) < tonumber(args.epoch) then return 4 end
  if tonumber(known[1]) > tonumber(args.epoch) then return 3 end
end
local function renew()
  for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, args.recordMs) end
end
-- A full Redis refuses a script whose first write needs memory, and accepts the others whole.
if args.mustFit then renew() end
if #ARGV > 1 then redis.call('HSET', KEYS[1], unpack(ARGV, 2)) end
if args.removes then redis.call('HDEL', KEYS[1], args.removes) end
renew()
return 1
