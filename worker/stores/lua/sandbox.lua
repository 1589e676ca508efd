-- Note until when a sandbox is kept or held; it is due when all of these times have passed.
-- KEYS: entry, index of due times
-- ARGV: member of the index, field (keep, or held:<task id>), epoch seconds (0 lets go), run id
local field, till = ARGV[2], tonumber(ARGV[3])
if till == 0 then
  redis.call('HDEL', KEYS[1], field)
elseif till > tonumber(redis.call('HGET', KEYS[1], field) or 0) then
  redis.call('HSET', KEYS[1], field, ARGV[3])
end
redis.call('HSET', KEYS[1], 'run_id', ARGV[4])
local due, fields = 0, redis.call('HGETALL', KEYS[1])
for place = 1, #fields, 2 do
  if fields[place] == 'keep' or string.sub(fields[place], 1, 5) == 'held:' then
    due = math.max(due, tonumber(fields[place + 1]))
  end
end
redis.call('ZADD', KEYS[2], due, ARGV[1])
return tostring(due)
