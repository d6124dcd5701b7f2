local call, format = redis.call, string.format

-- Nil if the key is gone, or holds anything but text.
local function text_of(name)
  local value = redis.pcall('GET', name)
  return type(value) == 'string' and value or nil
end

-- A mark's name, and how much was given back to its counter since it began. Nil if it is not a mark.
local function read_mark(name)
  return string.match(text_of(name) or '', '^([%w_-]+) (%d+)$')
end

-- A take left the counter `taken` units ahead of now. Only the part of its cost's stretch of time that has not drained
-- is given back, less what was given to the counter since. Returns what is left, as text, and how much is given; nil if
-- it is too late.
local function give_arrival(name, cost_worth, tolerance, taken, given_since)
  local value = text_of(name)
  if not value then return nil end
  local number, ends, debt = tonumber(value), nil, nil
  local wide = not (number and number % 1 == 0)
  if wide then
    ends, debt = read_wide(value)
  else
    ends, debt = (math.abs(number) - at) % span, number < 0
  end
  if not ends or ends > passed and not wide then return nil end
  local still = taken - given_since
  if taken <= 0 or still <= 0 or ends < still then return nil end
  local given = math.min(cost_worth, still)
  local left = ends - given
  debt = debt and left > tolerance
  return wide and (debt and 'w-' or 'w') .. instant_text(left) or arrival_text(left, debt), given
end

-- Writes a counter after giving something back, and its mark if that has to be noted.
local function write_given(name, text, mark_name, begun, given_text, given)
  call('SET', name, text, 'KEEPTTL')
  if given > 0 then call('SET', mark_name, begun .. ' ' .. format('%.0f', given_text + given), 'KEEPTTL') end
end
