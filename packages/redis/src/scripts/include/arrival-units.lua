-- Arrival times are whole units of 2^-20 ms, modulo 2^53 of them (99 days): small enough to be exact in Lua's numbers,
-- and an integer that the server stores in 8 bytes and can increment. A time that seems to be more than 3/4 of the
-- circle ahead has passed; keys of this form expire before the two could be confused, which `widestMs` in
-- window-code.ts ensures.
local floor = math.floor
local span = 9007199254740992
local passed = 0.75 * span
local whole_ms = floor(now_us / 1000)
local within_ms = floor(now_us % 1000 * 1048.576)
local at = whole_ms % 8589934592 * 1048576 + within_ms
-- Up to the end of the circle: a sum that is never computed cannot be rounded.
local room = span - at

-- A key's expiry is renewed when its arrival passes a multiple of this, a minute. In between, the arrival grows by less
-- than that, and a key lives for more than that beyond its arrival. The same for every limit, or an edit would change
-- the count.
local renewal = 62914560000

-- Windows that reach further than 12 days store milliseconds since 1970 and units within one instead:
-- `w1700000000000:524288`. Either form is read by either kind of window, so that an edited limit keeps its counters.
-- Returns how far ahead it is, and whether it is debt; nil for a value that is not ours.
local function read_wide(value)
  local sign, ms, units = string.match(value, '^w(%-?)(%d+):(%d+)$')
  if not sign then return nil end
  local distance = (ms - whole_ms) * 1048576 + (units - within_ms)
  return distance > 0 and distance or 0, sign == '-'
end

-- How far ahead of now an instant is that is written as `ms:units`; below 0 if it has passed.
local function read_ahead(word)
  local ms, units = string.match(word, '^(%d+):(%d+)$')
  return ms and (ms - whole_ms) * 1048576 + (units - within_ms) or 0
end

-- An instant this far ahead of now, as `ms:units`.
local function instant_text(ahead)
  local units = within_ms + ahead
  local ms = floor(units / 1048576)
  return string.format('%.0f:%.0f', whole_ms + ms, units - ms * 1048576)
end

-- An arrival this far ahead of now, as it is stored. Debt is negative; the start of the circle, which has no sign, is
-- written as its end.
local function arrival_text(ahead, debt)
  local arrival = ahead < room and at + ahead or ahead - room
  if not debt then return string.format('%.0f', arrival) end
  return string.format('-%.0f', arrival == 0 and span or arrival)
end
