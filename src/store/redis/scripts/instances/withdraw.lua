-- Withdraws a sender's undelivered messages from the mailbox of a lost instance. They are never delivered afterwards.
--
-- KEYS  1 lease, 2 mailbox
-- ARGV  1 sender
-- Returns for each withdrawn entry the number of its first message and the number of its messages: {first, count, …}

if redis.call('GET', KEYS[1]) == 'alive' then return {} end
if redis.call('EXISTS', KEYS[2]) == 0 then return {} end
local groups = redis.call('XINFO', 'GROUPS', KEYS[2])
if not groups[1] then return {} end
local lastDelivered
for i = 1, #groups[1], 2 do
  if groups[1][i] == 'last-delivered-id' then lastDelivered = groups[1][i + 1] end
end
local withdrawn = {}
local after = lastDelivered
while after do
  -- Read few entries at once: each may have half a MiB.
  local entries = redis.call('XRANGE', KEYS[2], '(' .. after, '+', 'COUNT', 16)
  after = #entries > 0 and entries[#entries][1]
  for _, entry in ipairs(entries) do
    local fields = {}
    for i = 1, #entry[2], 2 do fields[entry[2][i]] = entry[2][i + 1] end
    if fields.f == ARGV[1] and fields.c then
      redis.call('XDEL', KEYS[2], entry[1])
      withdrawn[#withdrawn + 1] = tonumber(fields.n)
      withdrawn[#withdrawn + 1] = tonumber(fields.c)
    end
  end
end
return withdrawn
