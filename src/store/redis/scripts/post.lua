-- Puts letters into a mailbox, all or none, as one entry.
--
-- KEYS  1 lease, 2 mailbox, 3 counts
-- ARGV  1 most bytes that a mailbox holds, 2 TTL in ms, 3 sender, 4 number of the first letter, 5 bytes that the letters
--       count, 6 their contents
-- Returns 1 posted, 2 full, 3 gone

if redis.call('GET', KEYS[1]) ~= 'alive' then return 3 end
local counts = redis.call('HMGET', KEYS[3], 'posted', 'freed')
local posted, freed = tonumber(counts[1] or 0), tonumber(counts[2] or 0)
local held, size = posted - freed, tonumber(ARGV[5])
if held > 0 and held + size > tonumber(ARGV[1]) then return 2 end

local total = string.format('%.0f', posted + size)
-- 'z' counts the bytes ever posted, so that a receipt says what it frees without a look at the letters.
redis.call('XADD', KEYS[2], '*', 'f', ARGV[3], 'n', ARGV[4], 'z', total, 'd', ARGV[6])
redis.call('HSET', KEYS[3], 'posted', total, 'freed', string.format('%.0f', freed))
redis.call('PEXPIRE', KEYS[2], ARGV[2])
redis.call('PEXPIRE', KEYS[3], ARGV[2])
return 1
