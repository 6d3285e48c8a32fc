-- Appends entries to a stream of this process, and begins the stream first if asked to. An entry has the number of its latest event
-- as its id; `p` is the number of the event before its first one, so that a reader notices what was trimmed or lost.
-- KEYS: stream, owners. ARGV: number of the stream, process, lifetime, `begin` or `append`, last will (empty if there is none),
-- beginning of the keys of the session's streams if owners of expired streams are to be removed (else empty), id of the first entry
-- that stays (empty if all do), 1 if the stream ends, then id, `p`, 1 if it ends the stream, and events of each entry.
-- Returns 1; 0 if the stream belongs to another process or was ended by one; or -n if Redis has events up to n already, and nothing
-- was appended.
local is_new = ARGV[4] == 'begin' and redis.call('HSETNX', KEYS[2], ARGV[1], ARGV[2]) == 1
local function latest()
    if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
    local info = redis.call('XINFO', 'STREAM', KEYS[1])
    for i = 1, #info, 2 do
        if info[i] == 'last-generated-id' then return tonumber(string.match(info[i + 1], '^%d+')) end
    end
end
if not is_new then
    local owner = redis.call('HGET', KEYS[2], ARGV[1])
    if owner and owner ~= ARGV[2] then return 0 end
    if not owner then
        redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
        local number = latest()
        if ARGV[10] and number > tonumber(ARGV[10]) then return -number end
    end
end
for i = 9, #ARGV, 4 do
    local added = redis.pcall('XADD', KEYS[1], ARGV[i], 'p', ARGV[i + 1], 'l', ARGV[i + 2], 'e', ARGV[i + 3])
    if type(added) == 'table' and added.err then
        if i == 9 and string.find(added.err, 'equal or smaller', 1, true) then return -latest() end
        return added
    end
end
if ARGV[8] == '1' then
    if not is_new then redis.call('HDEL', KEYS[2], ARGV[1] .. 'w') end
elseif ARGV[4] == 'begin' then
    redis.call('HSET', KEYS[2], ARGV[1] .. 'w', ARGV[5])
end
if ARGV[7] ~= '' then redis.call('XTRIM', KEYS[1], 'MINID', '=', ARGV[7]) end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
if ARGV[6] ~= '' then
    -- Streams that have ended and whose events have expired need no owner any more.
    for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
        if field ~= ARGV[1] and string.match(field, '^%d+$') and redis.call('HEXISTS', KEYS[2], field .. 'w') == 0
            and redis.call('EXISTS', ARGV[6] .. field) == 0 then
            redis.call('HDEL', KEYS[2], field, field .. 't')
        end
    end
end
return 1
