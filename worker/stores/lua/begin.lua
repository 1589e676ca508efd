-- Start of a body: may this message run, and with what history?
-- KEYS: record, index of leases, cancel mark of the run
-- ARGV: task id, attempt of the message, owner, lease ms, record ttl ms, envelope, run id, delivery, carry
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local attempt, lease = tonumber(ARGV[2]), tonumber(ARGV[4])

local was = redis.call('HMGET', KEYS[1], 'state', 'attempt', 'lease_until', 'fence', 'deaths',
  'first_seen', 'spent_ms', 'started_at', 'payload', 'carry', 'next_eta', 'seen_at', 'delivery',
  'handed_on')
local state, recorded = was[1], tonumber(was[2] or 0)
local lease_until, fence, deaths = tonumber(was[3] or 0), tonumber(was[4] or 0), tonumber(was[5] or 0)
local first_seen, spent = tonumber(was[6] or now), tonumber(was[7] or 0)
local carry = ARGV[9] ~= '' and ARGV[9] or was[10] or ''

if state == 'succeeded' or state == 'failed' or state == 'cancelled' then
  return {'done', state, was[9] or ''}
end
if attempt < recorded then
  return {'stale', state, was[9] or ''}
end
-- The same delivery asks twice when the answer to its first question was lost.
local again = state == 'running' and was[13] == ARGV[8]
if state == 'running' and lease_until > now and not again then
  return {'busy', state, ''}
end

local waited = 0
if state == 'running' and not again then
  -- The owner is gone. It is known to have worked until its last sign of life. One that its worker handed on did
  -- not die; what is handed on for ever ends at its deadline, by the time it spent.
  deaths = deaths + (was[14] == '1' and 0 or 1)
  spent = spent + math.max(0, tonumber(was[12] or now) - tonumber(was[8] or now))
elseif state == 'waiting' then
  waited = math.max(0, now - tonumber(was[11] or now))
end

fence = fence + 1
redis.call('HSET', KEYS[1], 'state', 'running', 'attempt', attempt, 'owner', ARGV[3], 'fence', fence,
  'lease_until', now + lease, 'started_at', now, 'seen_at', now, 'deaths', deaths, 'first_seen', first_seen,
  'spent_ms', spent, 'envelope', ARGV[6], 'run_id', ARGV[7], 'delivery', ARGV[8], 'carry', carry, 'republished', 0,
  'handed_on', 0)
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('ZADD', KEYS[2], now + lease, ARGV[1])
return {'run', tostring(fence), tostring(deaths), tostring(spent), tostring(first_seen), tostring(now),
  tostring(redis.call('EXISTS', KEYS[3])), carry, tostring(waited)}
