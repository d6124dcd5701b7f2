-- Arrival times are whole units of 2^-20 ms, modulo 2^53 of them (99 days): small enough to be exact in Lua's numbers, and an
-- integer that the server keeps in 8 bytes and adds to by itself. What seems to be more than 3/4 of the circle ahead has
-- passed; counters end long before that could be mistaken.
local floor = math.floor
local span = 9007199254740992
local passed = 0.75 * span
local at = floor(now_us / 1000) % 8589934592 * 1048576 + floor(now_us % 1000 * 1048.576)

-- Windows that reach further than 24 days keep units of 2^-10 ms since 1970 instead, written `w…`. Either form is read by
-- either kind of window, so that an edited limit keeps its counters.
local at_wide = floor(now_us / 1000) * 1024 + floor(now_us % 1000 * 1.024)
