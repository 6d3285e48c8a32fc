-- Removes all streams of a session. KEYS: owners, hashes with complete streams. ARGV: beginning of the keys of its streams, which are in the slot of the hash.
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if string.match(field, '^%d+$') then redis.call('UNLINK', ARGV[1] .. field) end
end
redis.call('UNLINK', unpack(KEYS))
return 1
