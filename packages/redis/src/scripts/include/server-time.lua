-- The only time there is: the server's own. `now_us` is whole microseconds since 1970, `now_ms` the same in milliseconds.
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = now_us / 1000
