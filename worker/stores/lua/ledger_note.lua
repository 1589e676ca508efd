-- A step that sends nothing is about to be done.
-- KEYS: entry
-- ARGV: stage, ttl ms
local stage = redis.call('HGET', KEYS[1], 'stage')
if not stage or stage == 'dispatch' or stage == 'done' then
  return 0
end
redis.call('HSET', KEYS[1], 'stage', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
