-- Saves the record of a task, unless it belongs to another process or exceeds a limit.
-- Keys: the record, the unfinished tasks, the expiry of tasks, what each task counts, the sums.
-- Arguments: 1 id, 2 record, 3 process, 4 whether the task has ended, 5 expiry or 0, 6 bytes, 7 client or '',
-- 8 and 9 limits of tasks and bytes, 10 and 11 those of one client, 12 and 13 start of keys of records and messages.
local record, open, expiry, counted, sums = unpack(KEYS)
local id, bytes, client = ARGV[1], tonumber(ARGV[6]), ARGV[7]

local function add(tasks, size, name)
    local function change(field, by)
        if by ~= 0 and redis.call('HINCRBY', sums, field, by) <= 0 then redis.call('HDEL', sums, field) end
    end
    change('n', tasks)
    change('b', size)
    if name ~= '' then
        change('n:' .. name, tasks)
        change('b:' .. name, size)
    end
end

local function forget(gone)
    local known = redis.call('HGET', counted, gone)
    if known then
        local size, name = string.match(known, '^(%d+) (.*)$')
        add(-1, -tonumber(size), name)
        redis.call('HDEL', counted, gone)
    end
    redis.call('ZREM', expiry, gone)
    redis.call('SREM', open, gone)
    redis.call('UNLINK', ARGV[12] .. gone, ARGV[13] .. gone)
end

local owner = redis.call('HGET', record, 'owner')
if owner then
    -- The end of a task is saved once, but the script may be repeated.
    local is_same = ARGV[2] == redis.call('HGET', record, 'record')
    if owner ~= ARGV[3] then return 'owner' end
    if redis.call('SISMEMBER', open, id) == 0 and not is_same then
        if ARGV[4] == '1' then return 'saved' end
        return 'owner'
    end
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', expiry, '-inf', now, 'LIMIT', 0, 100)) do
    if gone ~= id then forget(gone) end
end
local known = redis.call('HGET', counted, id)
if not owner and known then
    forget(id)
    known = false
end
if not known then
    local function sum(field) return tonumber(redis.call('HGET', sums, field) or 0) end
    if sum('n') + 1 > tonumber(ARGV[8]) or sum('b') + bytes > tonumber(ARGV[9]) then return 'full' end
    if client ~= '' and (sum('n:' .. client) + 1 > tonumber(ARGV[10]) or sum('b:' .. client) + bytes > tonumber(ARGV[11])) then
        return 'share'
    end
    add(1, bytes, client)
else
    local size, name = string.match(known, '^(%d+) (.*)$')
    add(0, bytes - tonumber(size), name)
    client = name
end
redis.call('HSET', counted, id, bytes .. ' ' .. client)
redis.call('HSET', record, 'owner', ARGV[3], 'record', ARGV[2])
if ARGV[5] ~= '0' then
    redis.call('PEXPIREAT', record, ARGV[5])
    redis.call('ZADD', expiry, ARGV[5], id)
end
if ARGV[4] == '1' then
    redis.call('SREM', open, id)
    redis.call('UNLINK', ARGV[13] .. id)
else
    redis.call('SADD', open, id)
end
return 'saved'
