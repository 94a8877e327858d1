-- Frees what a mailbox holds up to a delivery.
--
-- KEYS  1 mailbox, 2 counts
-- ARGV  1 the first id to keep, 2 the bytes ever posted up to the delivery
-- Returns 1

redis.call('XTRIM', KEYS[1], 'MINID', ARGV[1])
local counts = redis.call('HMGET', KEYS[2], 'posted', 'freed')
local total = tonumber(ARGV[2])
-- Counts that begin anew, after data were lost, know nothing of this receipt.
if counts[1] and tonumber(counts[1]) >= total and tonumber(counts[2] or 0) < total then
  redis.call('HSET', KEYS[2], 'freed', ARGV[2])
end
return 1
