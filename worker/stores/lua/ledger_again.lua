-- The call never started, or only reads: a new generation of it may be sent, anywhere.
-- KEYS: entry
-- ARGV: generation that is over, ttl ms
local was = redis.call('HMGET', KEYS[1], 'stage', 'generation')
if not was[1] or was[1] == 'done' or was[2] ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'stage', 'stage', 'generation', ARGV[1] + 1, 'vouched', 1)
redis.call('HDEL', KEYS[1], 'provider', 'sandbox')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return ARGV[1] + 1
