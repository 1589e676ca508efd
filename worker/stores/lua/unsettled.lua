-- Take a task that was closed from outside and whose time to be settled has come; it is put off, twice as long every
-- time, until it is settled.
-- KEYS: index of unsettled tasks
-- ARGV: key prefix of records, first put-off ms, longest put-off ms
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
while true do
  local id = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 1)[1]
  if not id then
    return false
  end
  local key = ARGV[1] .. id
  if redis.call('HEXISTS', key, 'unsettled') == 1 then
    local times = redis.call('HINCRBY', key, 'unsettled', 1)
    local wait = math.min(tonumber(ARGV[2]) * 2 ^ math.min(times - 1, 16), tonumber(ARGV[3]))
    redis.call('ZADD', KEYS[1], now + wait, id)
    return id
  end
  redis.call('ZREM', KEYS[1], id)
end
