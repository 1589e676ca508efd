-- Sign of life of a running body. Replies {still ours, run is cancelled}.
-- KEYS: record, index of leases, cancel mark of the run
-- ARGV: task id, fence, lease ms
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local was = redis.call('HMGET', KEYS[1], 'state', 'fence')
if not was[1] then
  -- A record that is gone has no other owner; the body goes on.
  return {1, redis.call('EXISTS', KEYS[3])}
end
if was[1] ~= 'running' or was[2] ~= ARGV[2] then
  return {0, 0}
end
redis.call('HSET', KEYS[1], 'lease_until', now + tonumber(ARGV[3]), 'seen_at', now)
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[3]), ARGV[1])
return {1, redis.call('EXISTS', KEYS[3])}
