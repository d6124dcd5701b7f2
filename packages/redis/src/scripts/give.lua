--- Gives a take back by its receipt, once. Keys of its counters are in the receipt, which shares their slot.
---
--- KEYS: the receipt
--- returns: { now_us, 0, given }: 1 if anything could still be given back, else 0
--- include: server-time, arrival-units

local call, pack, unpack_from, byte, format = redis.call, struct.pack, struct.unpack, string.byte, string.format

-- Undefined where the key is gone, or holds something else than text.
local function text_of(name)
  local value = redis.pcall('GET', name)
  return type(value) == 'string' and value or nil
end

-- Only what has not drained of the stretch of time that the cost is worth, less what was given to the counter since.
local function give_arrival(name, cost_worth, tolerance, word, given_since)
  local value = text_of(name)
  local ms, units = string.match(word, '^(%d+):(%d+)$')
  if not value or not ms then return nil end
  local number, ends, debt = tonumber(value), nil, nil
  local wide = not (number and number % 1 == 0)
  if wide then
    ends, debt = read_wide(value)
  else
    ends, debt = (math.abs(number) - at) % span, number < 0
  end
  if not ends or ends > passed and not wide then return nil end
  local taken = (ms - whole_ms) * 1048576 + (units - within_ms)
  local still = taken - given_since
  if taken <= 0 or still <= 0 or ends < still then return nil end
  local given = math.min(cost_worth, still)
  local left = ends - given
  debt = debt and left > tolerance
  return wide and (debt and 'w-' or 'w') .. instant_text(left) or arrival_text(left, debt), given
end

local function give_count(name, cost, ends)
  local value = text_of(name)
  if not value or #value ~= 17 or byte(value) ~= 67 then return nil end
  local _, stored_ends, count = unpack_from('<Bdd', value)
  if now_ms >= ends or stored_ends <= now_ms or count < cost then return nil end
  return pack('<Bdd', 67, stored_ends, count - cost), 0
end

-- The cost is in the current count while its window is the current one, and in the previous one after that.
local function give_sliding(name, cost, idle, per_ms)
  local value = text_of(name)
  if not value or #value ~= 25 or byte(value) ~= 83 or now_ms >= idle then return nil end
  local _, stored_idle, current, previous = unpack_from('<Bddd', value)
  if stored_idle == idle and current >= cost then
    return pack('<Bddd', 83, stored_idle, current - cost, previous), 0
  elseif stored_idle == idle + per_ms and previous >= cost then
    return pack('<Bddd', 83, stored_idle, current, previous - cost), 0
  end
  return nil
end

-- Out of the entry it was counted in: the first that is dated at or after it.
local function give_log(name, cost, taken_ms, per_ms)
  local value = text_of(name)
  if not value or byte(value) ~= 76 or #value % 16 ~= 1 or now_ms >= taken_ms + per_ms then return nil end
  for position = 2, #value, 16 do
    local time, held = unpack_from('<dd', value, position)
    if time >= taken_ms then
      if held < cost then return nil end
      local entry = held > cost and pack('<dd', time, held - cost) or ''
      return string.sub(value, 1, position - 1) .. entry .. string.sub(value, position + 16), 0
    end
  end
  return nil
end

local held = text_of(KEYS[1])
if not held then return { now_us, 0, 0 } end
call('DEL', KEYS[1])
local readable, record = pcall(cmsgpack.unpack, held)
if not readable or type(record) ~= 'table' then return { now_us, 0, 0 } end
for i = 2, #record do
  if type(record[i]) ~= 'table' or #record[i] ~= 10 then return { now_us, 0, 0 } end
end
local any = 0
for i = 2, #record do
  local name, mark_name, kind, cost, a, b, taken_ms, word, beginning, given_before = unpack(record[i])
  local mark = text_of(mark_name)
  local begun, given_text = string.match(mark or '', '^([%w_-]+) (%d+)$')
  if begun == beginning then
    local text, given
    if kind <= 2 then
      text, given = give_arrival(name, a, b, word, given_text - given_before)
    elseif kind == 3 then
      text, given = give_count(name, cost, word)
    elseif kind == 4 then
      text, given = give_sliding(name, cost, word, a)
    else
      text, given = give_log(name, cost, taken_ms, a)
    end
    if text then
      any = 1
      call('SET', name, text, 'KEEPTTL')
      if given > 0 then
        call('SET', mark_name, begun .. ' ' .. format('%.0f', given_text + given), 'KEEPTTL')
      end
    end
  end
end
-- What was given back is not taken any more: a repetition of the request is a new one.
if any == 1 and record[1] ~= '' then call('DEL', record[1]) end
return { now_us, 0, any }
