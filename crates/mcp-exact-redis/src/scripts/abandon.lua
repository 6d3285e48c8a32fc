-- Takes a stream from its process, unless it has ended: its last will becomes its last event, and nobody appends any more.
-- KEYS: stream, owners. ARGV: number of the stream, process, lifetime, number of an event that the
-- client or the process knows (0 if none): the last will comes behind it, also if Redis has lost it.
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return 0 end
local last = tonumber(ARGV[4])
if redis.call('EXISTS', KEYS[1]) == 1 then
    local latest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
    if latest and latest[2][4] == '1' then return 0 end
    local info = redis.call('XINFO', 'STREAM', KEYS[1])
    for i = 1, #info, 2 do
        if info[i] == 'last-generated-id' then last = math.max(last, tonumber(string.match(info[i + 1], '^%d+'))) end
    end
end
redis.call('HSET', KEYS[2], ARGV[1], '-')
local will = redis.call('HGET', KEYS[2], ARGV[1] .. 'w')
redis.call('HDEL', KEYS[2], ARGV[1] .. 'w')
if will and will ~= '' then
    local number = string.format('%.0f', last + 1)
    -- Whatever a reader lacks before it, nothing comes after it: no gap is noted.
    redis.call('XADD', KEYS[1], number .. '-0', 'p', '0', 'l', '1', 'e', number .. ' ' .. #will .. '\n' .. will)
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 1
