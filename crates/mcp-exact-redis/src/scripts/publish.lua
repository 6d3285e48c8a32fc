-- Appends messages to the bus, with numbers without a gap. KEYS: messages, count. ARGV: length, process, then number and text of
-- each message of the process. `count.lua` runs before it.
for i = 3, #ARGV, 2 do
    local number = redis.call('INCR', KEYS[2])
    redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], string.format('%.0f-0', number), 'f', ARGV[2], 'n', ARGV[i], 'm', ARGV[i + 1])
end
return 1
