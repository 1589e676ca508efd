-- End of a body: write its outcome, unless somebody else owns the task by now.
-- KEYS: record, index of leases
-- ARGV: task id, fence, state, payload, cause, countdown ms, spent ms, grace ms, record ttl ms, carry
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local was = redis.call('HMGET', KEYS[1], 'state', 'fence', 'attempt', 'history')
if was[1] ~= 'running' or was[2] ~= ARGV[2] then
  return 0
end
local due = now + tonumber(ARGV[8])
if ARGV[3] == 'waiting' then
  local eta = now + tonumber(ARGV[6])
  due = eta + tonumber(ARGV[8])
  redis.call('HSET', KEYS[1], 'attempt', tonumber(was[3]) + 1, 'next_eta', eta)
end
local history = was[4] or ''
if ARGV[5] ~= '' then
  history = history .. was[3] .. ' ' .. ARGV[5] .. '\n'
end
redis.call('HSET', KEYS[1], 'state', ARGV[3], 'payload', ARGV[4], 'spent_ms', ARGV[7], 'lease_until', 0,
  'carry', ARGV[10], 'history', history, 'deaths', 0)
redis.call('PEXPIRE', KEYS[1], ARGV[9])
redis.call('ZADD', KEYS[2], due, ARGV[1])
return 1
