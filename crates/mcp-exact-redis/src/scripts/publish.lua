-- Appends messages to the bus, with numbers without a gap. KEYS: messages, count. ARGV: length, process, then number and text of
-- each message of the process.
if redis.call('EXISTS', KEYS[2]) == 0 then
    -- Numbers begin at the time in microseconds: they are behind those of messages that were lost, so that readers notice the gap.
    local time = redis.call('TIME')
    local number = time[1] * 1000000 + time[2]
    -- A count that was lost alone begins behind the messages.
    if redis.call('EXISTS', KEYS[1]) == 1 then
        local latest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
        if latest then number = math.max(number, tonumber(string.match(latest[1], '^%d+'))) end
    end
    redis.call('SET', KEYS[2], string.format('%.0f', number))
end
for i = 3, #ARGV, 2 do
    local number = redis.call('INCR', KEYS[2])
    redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], string.format('%.0f-0', number), 'f', ARGV[2], 'n', ARGV[i], 'm', ARGV[i + 1])
end
return 1
