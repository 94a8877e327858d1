-- Frees what a mailbox holds up to a delivery.
--
-- KEYS  1 mailbox, 2 bytes ever posted, 3 bytes ever freed
-- ARGV  1 the first id to keep, 2 the bytes ever posted up to the delivery, 3 TTL of the counts in ms
-- Returns 1

redis.call('XTRIM', KEYS[1], 'MINID', ARGV[1])
local counts = redis.call('MGET', KEYS[2], KEYS[3])
local total = tonumber(ARGV[2])
-- Counts that begin anew, after data were lost, know nothing of this receipt.
if counts[1] and tonumber(counts[1]) >= total and tonumber(counts[2] or 0) < total then
  redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])
end
return 1
