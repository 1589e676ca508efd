-- A task is over, and what it left behind may not have come to light yet: it is settled once more, later.
-- KEYS: record, index of unsettled tasks
-- ARGV: task id, ms until then
local state = redis.call('HGET', KEYS[1], 'state')
if state ~= 'failed' and state ~= 'cancelled' then
  return 0
end
local clock = redis.call('TIME')
redis.call('HSET', KEYS[1], 'unsettled', 0)
redis.call('ZADD', KEYS[2], clock[1] * 1000 + math.floor(clock[2] / 1000) + tonumber(ARGV[2]), ARGV[1])
return 1
