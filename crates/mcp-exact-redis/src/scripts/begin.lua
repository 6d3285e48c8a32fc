-- Begins a stream. KEYS: owners. ARGV: number of the stream, process, lifetime, and the last will if there is one.
-- Returns 1, or 0 if the stream is another process's.
local owner = redis.call('HGET', KEYS[1], ARGV[1])
if owner and owner ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if ARGV[4] then redis.call('HSET', KEYS[1], ARGV[1] .. 'w', ARGV[4]) end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
