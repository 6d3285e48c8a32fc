-- Removes the events up to a number. An entry that has later events too stays, and the number is noted.
-- KEYS: stream, owners, hashes with complete streams. ARGV: number of the stream, number of the event.
if redis.call('EXISTS', KEYS[1]) == 0 then
    for i = 3, #KEYS do
        local complete = redis.call('HGET', KEYS[i], ARGV[1])
        if complete then
            local trimmed, last, position = string.match(complete, '^(%d+) (%d+)\n()')
            local through = math.max(tonumber(trimmed), math.min(tonumber(last), tonumber(ARGV[2])))
            while true do
                local number, length, data = string.match(complete, '^(%d+) (%d+)\n()', position)
                if not number or tonumber(number) > through then break end
                position = data + length
            end
            local head = string.format('%.0f %s\n', through, last)
            redis.call('HSET', KEYS[i], ARGV[1], head .. string.sub(complete, position))
            return 1
        end
    end
    return 0
end
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
