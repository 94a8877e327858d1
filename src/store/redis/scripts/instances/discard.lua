-- Frees all entries of a mailbox up to and including a delivery.
--
-- KEYS  1 mailbox, 2 bytes ever posted, 3 bytes ever freed
-- ARGV  1 first id to keep, 2 bytes ever posted up to the delivery, 3 TTL of the counts in ms
-- Returns 1

redis.call('XTRIM', KEYS[1], 'MINID', ARGV[1])
local counts = redis.call('MGET', KEYS[2], KEYS[3])
local total = tonumber(ARGV[2])
-- Counts that started again after a loss of data do not include this delivery.
if counts[1] and tonumber(counts[1]) >= total and tonumber(counts[2] or 0) < total then
  redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])
end
return 1
