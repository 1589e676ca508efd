-- A call is at hand: what does the ledger know of it?
-- KEYS: entry, birth of the ledger
-- ARGV: fingerprint, nonce for a new entry, when the call was issued (ms, or empty), ttl ms
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('SET', KEYS[2], now, 'NX')
local was = redis.call('HMGET', KEYS[1], 'fingerprint', 'stage', 'nonce', 'generation', 'provider', 'sandbox',
  'result', 'vouched')
if was[1] then
  if was[1] ~= ARGV[1] then
    return {'conflict'}
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  local sent = was[2] == 'dispatch' or was[2] == 'done'
  local vouched = (sent or was[8] == '1') and 'present' or 'absent_unvouched'
  return {vouched, was[2], was[3], was[4], was[5] or '', was[6] or '', was[7] or ''}
end
-- Younger than the ledger, and younger than what it forgets: then it would be here if it had been sent.
local known_since = math.max(tonumber(redis.call('GET', KEYS[2])), now - tonumber(ARGV[4]))
local vouched = ARGV[3] ~= '' and tonumber(ARGV[3]) >= known_since
redis.call('HSET', KEYS[1], 'fingerprint', ARGV[1], 'stage', 'open', 'nonce', ARGV[2], 'generation', 1,
  'vouched', vouched and 1 or 0)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {vouched and 'absent_new' or 'absent_unvouched', 'open', ARGV[2], '1', '', '', ''}
