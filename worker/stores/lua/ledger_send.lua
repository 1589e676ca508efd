-- The call is about to be sent. Only one sandbox may be given one generation of it.
-- KEYS: entry
-- ARGV: nonce, generation, provider, sandbox, fingerprint, ttl ms
local was = redis.call('HMGET', KEYS[1], 'stage', 'nonce', 'generation', 'provider', 'sandbox')
if was[1] then
  if was[1] == 'done' or was[2] ~= ARGV[1] or was[3] ~= ARGV[2] then
    return 0
  end
  if was[1] == 'dispatch' and (was[4] ~= ARGV[3] or was[5] ~= ARGV[4]) then
    return 0
  end
end
-- An entry that is gone (the store was emptied under us) is written anew: who comes later finds it.
redis.call('HSET', KEYS[1], 'fingerprint', ARGV[5], 'stage', 'dispatch', 'nonce', ARGV[1], 'generation', ARGV[2],
  'provider', ARGV[3], 'sandbox', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
return 1
