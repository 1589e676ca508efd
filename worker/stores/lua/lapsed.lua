-- Take the tasks whose time in the index has come; each is put off, twice as long every time, so that a
-- backlog is not answered with ever more copies of the same message.
-- KEYS: index of leases
-- ARGV: key prefix of records, grace ms, longest wait ms, how many
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local taken = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[4])) do
  local key = ARGV[1] .. id
  local was = redis.call('HMGET', key, 'state', 'lease_until')
  if not was[1] then
    redis.call('ZREM', KEYS[1], id)
  elseif was[1] == 'running' and tonumber(was[2]) > now then
    redis.call('ZADD', KEYS[1], was[2], id)
  else
    local times = redis.call('HINCRBY', key, 'republished', 1)
    local wait = math.min(tonumber(ARGV[2]) * 2 ^ math.min(times - 1, 16), tonumber(ARGV[3]))
    redis.call('ZADD', KEYS[1], now + wait, id)
    taken[#taken + 1] = id
  end
end
return taken
