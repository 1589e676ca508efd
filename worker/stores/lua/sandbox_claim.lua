-- Take the sandbox that is due longest, so that it can be ended: nobody gets hold of it any more. It is put off,
-- twice as long every time, so that one that cannot be ended does not stand in the way of the others.
-- KEYS: index of due times
-- ARGV: key prefix of entries, first put-off, longest put-off (seconds)
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.3f', now), 'WITHSCORES', 'LIMIT', 0, 1)
if not found[1] then
  return false
end
local key = ARGV[1] .. found[1]
local times = redis.call('HINCRBY', key, 'doomed', 1)
local wait = math.min(tonumber(ARGV[2]) * 2 ^ math.min(times - 1, 16), tonumber(ARGV[3]))
redis.call('ZADD', KEYS[1], string.format('%.3f', now + wait), found[1])
return {found[1], found[2]}
