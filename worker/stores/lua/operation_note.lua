-- A sign of life of a running operation; with a cause, the end of an attempt that will be followed by another.
-- KEYS: record, index of running ones
-- ARGV: operation id, fence, lease ms, attempt, cause
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local was = redis.call('HMGET', KEYS[1], 'status', 'fence', 'stderr', 'noted')
if was[1] ~= 'running' or was[2] ~= ARGV[2] then
  return 0
end
-- Asked again when the answer was lost: an attempt ends once.
if ARGV[5] ~= '' and was[4] ~= ARGV[2] .. '/' .. ARGV[4] then
  redis.call('HSET', KEYS[1], 'stderr', (was[3] or '') .. ARGV[4] .. ' ' .. ARGV[5] .. '\n',
    'metadata.workspace_sync.cause', ARGV[5], 'noted', ARGV[2] .. '/' .. ARGV[4])
end
redis.call('HSET', KEYS[1], 'updated', now)
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[3]), ARGV[1])
return 1
