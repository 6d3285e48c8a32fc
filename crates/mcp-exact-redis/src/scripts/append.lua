-- Appends events to a stream, if this process may. Returns 1, or 0 if another process has ended or taken the stream.
-- KEYS: stream, owners. ARGV: number of the stream, process, lifetime, length, bytes, number of the latest event that the process
-- has appended (0 if it has not), then number, 1 if last, and data of each event.
local owner = redis.call('HGET', KEYS[2], ARGV[1])
if owner and owner ~= ARGV[2] then return 0 end
if not owner then redis.call('HSET', KEYS[2], ARGV[1], ARGV[2]) end
local last, bytes = 0, 0
local latest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if latest then
    last = tonumber(string.match(latest[1], '^%d+'))
    bytes = (tonumber(latest[2][8]) or 0) + #latest[2][6] + 64
elseif redis.call('EXISTS', KEYS[1]) == 1 then
    -- All events were trimmed.
    local info = redis.call('XINFO', 'STREAM', KEYS[1])
    for i = 1, #info, 2 do
        if info[i] == 'last-generated-id' then last = tonumber(string.match(info[i + 1], '^%d+')) end
    end
end
-- A Redis that took over from another one may lack events that the other one has confirmed.
last = math.max(last, tonumber(ARGV[6]))
for i = 7, #ARGV, 3 do
    local number = tonumber(ARGV[i])
    if number > last then
        -- Each event names its predecessor, so that a reader notices what was trimmed or lost.
        redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[4], ARGV[i] .. '-0',
            'p', string.format('%.0f', last), 'l', ARGV[i + 1], 'd', ARGV[i + 2], 'b', string.format('%.0f', bytes))
        bytes = bytes + #ARGV[i + 2] + 64
        last = number
    end
    if ARGV[i + 1] == '1' then redis.call('HDEL', KEYS[2], ARGV[1] .. 'w') end
end
-- Each event has the bytes before it. The oldest ones go until the rest fits, but never the latest one.
local least = bytes - tonumber(ARGV[5])
if least > 0 then
    -- As a rule the first event stays, or goes alone.
    local from, kept, count = '-', nil, 1
    repeat
        local events = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', count)
        local is_end = #events < count
        for _, event in ipairs(events) do
            kept = event[1]
            if (tonumber(event[2][8]) or 0) >= least then
                is_end = true
                break
            end
        end
        from, count = kept and '(' .. kept, 16
    until is_end
    if kept then redis.call('XTRIM', KEYS[1], 'MINID', '=', kept) end
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 1
