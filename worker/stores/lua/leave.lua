-- What the next body must know, left while this one runs.
-- KEYS: record
-- ARGV: fence, carry
local was = redis.call('HMGET', KEYS[1], 'state', 'fence')
if was[1] ~= 'running' or was[2] ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'carry', ARGV[2])
return 1
