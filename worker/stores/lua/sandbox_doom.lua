-- A sandbox is to be ended, now: nobody gets hold of it any more.
-- KEYS: entry, index of due times
-- ARGV: member of the index, run id
local run = redis.call('HGET', KEYS[1], 'run_id')
if run and run ~= ARGV[2] then
  return 'foreign'
end
redis.call('HSETNX', KEYS[1], 'doomed', 0)
redis.call('HSET', KEYS[1], 'run_id', ARGV[2])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
return 'noted'
