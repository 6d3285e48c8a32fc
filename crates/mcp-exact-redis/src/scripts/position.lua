-- Returns the number of the latest message of the bus, and the number before the first one that the bus has.
-- KEYS: messages, count. `count.lua` runs before it: no message has been published before the count exists.
local count = redis.call('GET', KEYS[2])
local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
if not first then return { count, count } end
return { count, string.format('%.0f', tonumber(string.match(first[1], '^%d+')) - 1) }
