-- Note until when a sandbox is kept or held; it is due when all of these times have passed.
-- KEYS: entry, index of due times
-- ARGV: member of the index, field (keep, or held:<task id>), seconds from now (empty lets go), run id
local field = ARGV[2]
local was = redis.call('HMGET', KEYS[1], 'run_id', 'doomed')
if was[1] and was[1] ~= ARGV[4] then
  return 'foreign'
end
if was[2] then
  -- Somebody may be ending it this very moment, and nobody can tell.
  return 'doomed'
end
if ARGV[3] ~= '' then
  local clock = redis.call('TIME')
  local till = clock[1] + clock[2] / 1000000 + tonumber(ARGV[3])
  if till > tonumber(redis.call('HGET', KEYS[1], field) or 0) then
    redis.call('HSET', KEYS[1], field, string.format('%.3f', till))
  end
elseif not was[1] then
  return 'noted'
else
  redis.call('HDEL', KEYS[1], field)
end
redis.call('HSET', KEYS[1], 'run_id', ARGV[4])
local due, fields = 0, redis.call('HGETALL', KEYS[1])
for place = 1, #fields, 2 do
  if fields[place] == 'keep' or string.sub(fields[place], 1, 5) == 'held:' then
    due = math.max(due, tonumber(fields[place + 1]))
  end
end
redis.call('ZADD', KEYS[2], string.format('%.3f', due), ARGV[1])
return 'noted'
