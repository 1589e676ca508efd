-- Close a record from outside its body (hard time limit, revoked, expired); an outcome that is there stays.
-- What the body leaves behind is still to be settled.
-- KEYS: record, index of leases, index of unsettled tasks
-- ARGV: task id, state, payload, cause, grace ms, ms to settle it in
local was = redis.call('HMGET', KEYS[1], 'state', 'fence', 'attempt', 'history')
if not was[1] then
  return 1
end
if was[1] == 'succeeded' or was[1] == 'failed' or was[1] == 'cancelled' then
  return 0
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('HSET', KEYS[1], 'state', ARGV[2], 'payload', ARGV[3], 'fence', tonumber(was[2]) + 1, 'lease_until', 0, 'unsettled', 0,
  'history', (was[4] or '') .. was[3] .. ' ' .. ARGV[4] .. '\n')
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[5]), ARGV[1])
redis.call('ZADD', KEYS[3], now + tonumber(ARGV[6]), ARGV[1])
return 1
