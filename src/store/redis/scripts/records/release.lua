-- Releases a session for other instances: the owner becomes empty.
--
-- KEYS  1 record, 2 tails, 3 pending
-- ARGV  1 epoch, 2 TTL in ms
-- Returns 1 done, 3 fenced, 4 no_record

local known = redis.call('HMGET', KEYS[1], 'epoch', 'ended')
if known[2] then return 3 end
if not known[1] or tonumber(known[1]) < tonumber(ARGV[1]) then return 4 end
if tonumber(known[1]) > tonumber(ARGV[1]) then return 3 end
-- The first write must be one that a full Redis accepts. It then accepts the others too: a draining instance must be
-- able to release its sessions.
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[2]) end
redis.call('HSET', KEYS[1], 'owner', '')
return 1
