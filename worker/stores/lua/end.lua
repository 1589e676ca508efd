-- End of a body: write its outcome, unless somebody else owns the task by now.
-- KEYS: record, index of leases
-- ARGV: task id, fence, state, payload, cause, countdown ms, spent ms, grace ms, record ttl ms, carry,
--   attempt, how many attempts this was (0: it was postponed)
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local was = redis.call('HMGET', KEYS[1], 'state', 'fence', 'attempt', 'history')
local attempt, history = tonumber(was[3] or ARGV[11]), was[4] or ''
-- A record that is gone (evicted, a failover) has no other owner: the outcome stands.
if was[1] and was[2] ~= ARGV[2] then
  return 0
end
if was[1] and was[1] ~= 'running' then
  -- A fence is one body's: the same outcome again means that the answer to the first call was lost.
  return was[1] == ARGV[3] and 1 or 0
end
if ARGV[5] ~= '' then
  history = history .. attempt .. ' ' .. ARGV[5] .. '\n'
end
local due = now + tonumber(ARGV[8])
if ARGV[3] == 'waiting' then
  local eta = now + tonumber(ARGV[6])
  due = eta + tonumber(ARGV[8])
  attempt = attempt + ARGV[12]
  redis.call('HSET', KEYS[1], 'next_eta', eta)
end
redis.call('HSET', KEYS[1], 'state', ARGV[3], 'attempt', attempt, 'fence', ARGV[2], 'payload', ARGV[4], 'spent_ms', ARGV[7], 'lease_until', 0,
  'carry', ARGV[10], 'history', history, 'deaths', 0)
redis.call('PEXPIRE', KEYS[1], ARGV[9])
redis.call('ZADD', KEYS[2], due, ARGV[1])
return 1
