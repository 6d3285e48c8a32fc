-- Appends messages to the bus, with numbers without a gap. KEYS: messages, count. ARGV: length, process, then number and text of
-- each message of the process.
-- A count that was lost alone begins behind the messages.
if redis.call('EXISTS', KEYS[2]) == 0 and redis.call('EXISTS', KEYS[1]) == 1 then
    local latest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
    if latest then redis.call('SET', KEYS[2], string.match(latest[1], '^%d+')) end
end
for i = 3, #ARGV, 2 do
    local number = redis.call('INCR', KEYS[2])
    redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], string.format('%.0f-0', number), 'f', ARGV[2], 'n', ARGV[i], 'm', ARGV[i + 1])
end
return 1
