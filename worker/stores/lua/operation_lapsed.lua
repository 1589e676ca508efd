-- Close operations whose owner has not been heard of. The fence grows, so that a late end cannot overwrite this.
-- KEYS: index of running ones
-- ARGV: prefix of records, cause, next action, record ttl ms, how many, prefix of the indexes of runs
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local closed = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[5])) do
  local key = ARGV[1] .. id
  local was = redis.call('HMGET', key, 'status', 'stderr', 'run_id')
  if was[1] == 'running' then
    redis.call('HINCRBY', key, 'fence', 1)
    redis.call('HSET', key, 'status', 'failed', 'closed_by', 'sweep', 'updated', now, 'next_action', ARGV[3],
      'stderr', (was[2] or '') .. '0 ' .. ARGV[2] .. '\n', 'metadata.workspace_sync.cause', ARGV[2])
    redis.call('PEXPIRE', key, ARGV[4])
    redis.call('PEXPIRE', ARGV[6] .. was[3], ARGV[4])
    closed[#closed + 1] = id
  end
  redis.call('ZREM', KEYS[1], id)
end
return closed
