-- Removes the events up to a number. An entry that has later events too stays, and the number is noted.
-- KEYS: stream, owners. ARGV: number of the stream, number of the event.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local info = redis.call('XINFO', 'STREAM', KEYS[1])
local last = 0
for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then last = tonumber(string.match(info[i + 1], '^%d+')) end
end
local through = math.min(last, tonumber(ARGV[2]))
redis.call('XTRIM', KEYS[1], 'MINID', '=', string.format('%.0f-0', through + 1))
local known = tonumber(redis.call('HGET', KEYS[2], ARGV[1] .. 't') or '0')
redis.call('HSET', KEYS[2], ARGV[1] .. 't', string.format('%.0f', math.max(known, through)))
return 1
