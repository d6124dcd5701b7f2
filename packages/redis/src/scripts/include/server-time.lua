-- The only time there is: the server's. `now_us` is in whole microseconds since 1970, `now_ms` in milliseconds.
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = now_us / 1000
