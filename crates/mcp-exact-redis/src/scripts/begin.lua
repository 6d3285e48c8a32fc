-- Begins a stream, or keeps one from expiring. KEYS: owners, stream. ARGV: number of the stream, process, lifetime, beginning of the
-- keys of the session's streams, last will (empty if there is none). Returns 1, or 0 if the stream is another process's.
local owner = redis.call('HGET', KEYS[1], ARGV[1])
if owner and owner ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[1], ARGV[1] .. 'w', ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
-- Now and then: streams that have ended and whose events have expired need no owner any more.
if redis.call('HLEN', KEYS[1]) % 128 == 0 then
    for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
        if field ~= ARGV[1] and string.match(field, '^%d+$') and redis.call('HEXISTS', KEYS[1], field .. 'w') == 0
            and redis.call('EXISTS', ARGV[4] .. field) == 0 then
            redis.call('HDEL', KEYS[1], field)
        end
    end
end
return 1
