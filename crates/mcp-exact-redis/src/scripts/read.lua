-- Reads the events behind a number. KEYS: stream, owners. ARGV: number of the stream, number of the event, bytes.
-- Returns `unknown`; or `trimmed` and the number of the first event; or the process that writes the stream (empty if it has
-- ended), and number, 1 if last, and data of each event.
local owner = redis.call('HGET', KEYS[2], ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 0 then
    if owner then return { owner } end
    return { 'unknown' }
end
local after = tonumber(ARGV[2])
if redis.call('XLEN', KEYS[1]) == 0 then
    local info = redis.call('XINFO', 'STREAM', KEYS[1])
    for i = 1, #info, 2 do
        if info[i] == 'last-generated-id' then
            local last = string.match(info[i + 1], '^%d+')
            if after < tonumber(last) then return { 'trimmed', last } end
        end
    end
end
local latest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local found = { owner or '' }
if latest and latest[2][4] == '1' then
    found[1] = ''
    -- The reader knows events that Redis has lost: it gets no end by waiting.
    local last = string.match(latest[1], '^%d+')
    if after > tonumber(last) then return { 'trimmed', last } end
end
local bytes, limit, from = 0, tonumber(ARGV[3]), ARGV[2]
while true do
    local events = redis.call('XRANGE', KEYS[1], '(' .. from .. '-0', '+', 'COUNT', 16)
    for _, event in ipairs(events) do
        local number = string.match(event[1], '^%d+')
        -- What is missing before an event was trimmed, or lost by a failover. What comes before the gap is read first.
        if tonumber(event[2][2]) > tonumber(from) then
            if #found > 1 then return found end
            return { 'trimmed', number }
        end
        bytes = bytes + #event[2][6] + 64
        if #found > 1 and bytes > limit then return found end
        from = number
        found[#found + 1] = from
        found[#found + 1] = event[2][4]
        found[#found + 1] = event[2][6]
    end
    if #events < 16 then return found end
end
