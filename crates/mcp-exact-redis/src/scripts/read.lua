-- Reads the entries with events behind a number. KEYS: stream, owners, hashes with complete streams. ARGV: number of the stream, number of
-- the event, bytes.
-- Returns `unknown`; or `trimmed`, the number of an event that is trimmed or lost, and the first entry behind it (empty if there is
-- none); or the process that writes the stream (empty if it has ended), and for each entry 1 if it ends the stream, and its events.
local known = redis.call('HMGET', KEYS[2], ARGV[1], ARGV[1] .. 't')
local owner, trimmed = known[1], known[2]
local after = tonumber(ARGV[2])
if redis.call('EXISTS', KEYS[1]) == 0 then
    if owner then return { owner } end
    for i = 3, #KEYS do
        local complete = redis.call('HGET', KEYS[i], ARGV[1])
        if complete then
            local through, last, first = string.match(complete, '^(%d+) (%d+)\n()')
            local events = string.sub(complete, first)
            if after < tonumber(through) then return { 'trimmed', through, events } end
            if after > tonumber(last) then return { 'trimmed', last, '' } end
            return { '', '1', events }
        end
    end
    return { 'unknown' }
end
if redis.call('XLEN', KEYS[1]) == 0 then
    local info = redis.call('XINFO', 'STREAM', KEYS[1])
    for i = 1, #info, 2 do
        if info[i] == 'last-generated-id' then
            local last = string.match(info[i + 1], '^%d+')
            if after < tonumber(last) then return { 'trimmed', last, '' } end
        end
    end
elseif trimmed and after < tonumber(trimmed) then
    -- The first entry may have trimmed events too.
    local first = redis.call('XRANGE', KEYS[1], '(' .. trimmed .. '-0', '+', 'COUNT', 1)[1]
    return { 'trimmed', trimmed, first and first[2][6] or '' }
end
local latest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local found = { owner or '' }
if latest and latest[2][4] == '1' then
    found[1] = ''
    -- The reader knows events that Redis has lost: it gets no end by waiting.
    local last = string.match(latest[1], '^%d+')
    if after > tonumber(last) then return { 'trimmed', last, '' } end
end
local bytes, limit, from = 0, tonumber(ARGV[3]), ARGV[2]
while true do
    local entries = redis.call('XRANGE', KEYS[1], '(' .. from .. '-0', '+', 'COUNT', 16)
    for _, entry in ipairs(entries) do
        local fields = entry[2]
        -- What is missing before an entry was trimmed, or lost by a failover. What comes before the gap is read first.
        if tonumber(fields[2]) > tonumber(from) then
            if #found > 1 then return found end
            return { 'trimmed', from, fields[6] }
        end
        if bytes >= limit and #found > 1 then return found end
        bytes = bytes + #fields[6]
        from = string.match(entry[1], '^%d+')
        found[#found + 1] = fields[4]
        found[#found + 1] = fields[6]
    end
    if #entries < 16 then return found end
end
