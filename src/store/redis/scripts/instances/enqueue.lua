-- Puts messages into a mailbox, all or none, as one entry.
--
-- KEYS  1 lease, 2 mailbox, 3 bytes ever posted, 4 bytes ever freed
-- ARGV  1 maximum bytes of a mailbox, 2 TTL in ms, 3 sender, 4 number of the first message, 5 bytes that the messages
--       count, 6 their contents, 7 number of messages
-- Returns 1 posted, 2 full, 3 gone

local state = redis.call('MGET', KEYS[1], KEYS[3], KEYS[4])
if state[1] ~= 'alive' then return 3 end
local isNew = not state[2]
local held = isNew and 0 or state[2] - (state[3] or 0)
if held > 0 and held + ARGV[5] > tonumber(ARGV[1]) then return 2 end

-- This is the first write of the script. A full Redis refuses it before anything has changed, and refuses no later
-- write.
local posted = redis.call('INCRBY', KEYS[3], ARGV[5])
-- 'z' counts the bytes ever posted, so that an ack token shows how much it frees without a look at the messages.
redis.call('XADD', KEYS[2], '*', 'f', ARGV[3], 'n', ARGV[4], 'z', posted, 'c', ARGV[7], 'd', ARGV[6])
-- The mailbox's instance renews the lifetime with its lease (`prolong`). A caller waits for this script, so it does
-- little.
if isNew then
  redis.call('DEL', KEYS[4])
  redis.call('PEXPIRE', KEYS[3], ARGV[2])
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
end
return 1
