-- The end of an operation, unless somebody else owns it by now or it has ended already.
-- KEYS: record, index of running ones, index of all
-- ARGV: operation id, fence ('' from outside the body), status, attempt, cause, result, next action, record ttl ms,
--   prefix of records, prefix of the indexes of runs, details
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local was = redis.call('HMGET', KEYS[1], 'status', 'fence', 'stderr', 'noted', 'recovers', 'run_id')
if not was[1] or (ARGV[2] ~= '' and was[2] ~= ARGV[2]) then
  return 0
end
if was[1] ~= 'running' then
  -- A fence is one body's: the same end again means that the answer to the first call was lost.
  return (ARGV[2] ~= '' and was[1] == ARGV[3]) and 1 or 0
end
if ARGV[5] ~= '' and was[4] ~= was[2] .. '/' .. ARGV[4] then
  redis.call('HSET', KEYS[1], 'stderr', (was[3] or '') .. ARGV[4] .. ' ' .. ARGV[5] .. '\n',
    'metadata.workspace_sync.cause', ARGV[5], 'noted', was[2] .. '/' .. ARGV[4])
end
redis.call('HSET', KEYS[1], 'status', ARGV[3], 'result', ARGV[6], 'next_action', ARGV[7], 'updated', now,
  'details', ARGV[11])
if ARGV[2] == '' then
  redis.call('HINCRBY', KEYS[1], 'fence', 1)
end
redis.call('PEXPIRE', KEYS[1], ARGV[8])
redis.call('PEXPIRE', ARGV[10] .. was[6], ARGV[8])
-- An operation takes less time than its record is kept, so what began before that is forgotten by now.
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - 2 * tonumber(ARGV[8]))
redis.call('ZREM', KEYS[2], ARGV[1])
if (ARGV[3] == 'succeeded' or ARGV[3] == 'partial') and (was[5] or '') ~= '' then
  -- All that this one recovers, which may be a recovery itself; each began before the next, so there is an end.
  local old = was[5]
  while old and old ~= '' and redis.call('EXISTS', ARGV[9] .. old) == 1 do
    redis.call('HSET', ARGV[9] .. old, 'next_action', '')
    old = redis.call('HGET', ARGV[9] .. old, 'recovers')
  end
end
return 1
