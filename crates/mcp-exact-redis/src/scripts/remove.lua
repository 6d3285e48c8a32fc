-- Removes all streams of a session. KEYS: owners. ARGV: beginning of the keys of its streams, which are in the slot of the hash.
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if string.match(field, '^%d+$') then redis.call('UNLINK', ARGV[1] .. field) end
end
redis.call('UNLINK', KEYS[1])
return 1
