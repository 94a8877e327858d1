-- Takes back what a sender has posted to a lost instance and what that was not given: nobody is given it any more.
--
-- KEYS  1 lease, 2 mailbox
-- ARGV  1 sender
-- Returns {number of the first letter of an entry that was taken back, how many letters it has, …}

if redis.call('GET', KEYS[1]) == 'alive' then return {} end
if redis.call('EXISTS', KEYS[2]) == 0 then return {} end
local groups = redis.call('XINFO', 'GROUPS', KEYS[2])
if not groups[1] then return {} end
local given
for i = 1, #groups[1], 2 do
  if groups[1][i] == 'last-delivered-id' then given = groups[1][i + 1] end
end
local withdrawn = {}
local after = given
while after do
  -- Few at once: each may hold half a MiB.
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
