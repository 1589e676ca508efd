-- An attempt wants to work on an operation: make its record, or take it over from the attempt before.
-- Replies {'run', fence}, {'done', status, result}, {'foreign', status}, or {'refused', status}.
-- KEYS: record, index of all, index of the run, index of running ones
-- ARGV: operation id, run id, task id, provider, sandbox id, lease ms, prefix of records, recovers, request
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local was = redis.call('HMGET', KEYS[1], 'status', 'fence', 'task_id', 'run_id', 'result', 'closed_by')
local status, fence = was[1], tonumber(was[2] or '0')
if status then
  if was[3] ~= ARGV[3] or was[4] ~= ARGV[2] then
    return {'foreign', status}
  end
  -- What the sweep took for dead may come back: the same task goes on with it.
  if status ~= 'running' and was[6] ~= 'sweep' then
    return {'done', status, was[5] or ''}
  end
elseif ARGV[8] ~= '' then
  local of = redis.call('HMGET', ARGV[7] .. ARGV[8], 'status', 'run_id')
  local old = of[1]
  if of[2] ~= ARGV[2] or (old ~= 'failed' and old ~= 'retry_exhausted' and old ~= 'cancelled') then
    return {'refused', old or ''}
  end
  redis.call('HSET', ARGV[7] .. ARGV[8], 'recovered_by', ARGV[1])
end

fence = fence + 1
redis.call('HSET', KEYS[1], 'status', 'running', 'fence', fence, 'run_id', ARGV[2], 'task_id', ARGV[3],
  'provider', ARGV[4], 'sandbox_id', ARGV[5], 'updated', now, 'next_action', '', 'closed_by', '')
redis.call('PERSIST', KEYS[1])
redis.call('PERSIST', KEYS[3])
if not status then
  redis.call('HSET', KEYS[1], 'created', now, 'recovers', ARGV[8], 'request', ARGV[9])
  redis.call('ZADD', KEYS[2], now, ARGV[1])
  redis.call('ZADD', KEYS[3], now, ARGV[1])
end
redis.call('ZADD', KEYS[4], now + tonumber(ARGV[6]), ARGV[1])
return {'run', tostring(fence)}
