-- Begins the count of the bus if there is none. KEYS: messages, count.
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
