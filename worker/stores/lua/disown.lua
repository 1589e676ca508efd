-- The process that ran a body is dead, or is being ended: free its lease at once. The fence grows, so that
-- a last sign of life cannot take the lease back.
-- KEYS: record, index of leases
-- ARGV: task id, owner, whether its worker hands it on because it was told to end (1 or 0)
local was = redis.call('HMGET', KEYS[1], 'state', 'owner', 'fence')
if was[1] ~= 'running' or was[2] ~= ARGV[2] then
  return 0
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('HSET', KEYS[1], 'lease_until', now, 'seen_at', now, 'fence', was[3] + 1)
if ARGV[3] == '1' then
  redis.call('HSET', KEYS[1], 'handed_on', 1)
end
redis.call('ZADD', KEYS[2], now, ARGV[1])
return 1
