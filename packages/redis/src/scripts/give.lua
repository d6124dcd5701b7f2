--- Gives a take back by its receipt, once. The receipt holds the keys of its counters, and shares their slot.
---
--- KEYS: the receipt
--- returns: { now_us, 0, given }: 1 if anything could still be given back, else 0
--- include: server-time, arrival-units, give-arrival

local pack, unpack_from, byte = struct.pack, struct.unpack, string.byte

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

-- Takes it out of the entry it was counted in: the first one dated at or after it.
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
  local begun, given_text = read_mark(mark_name)
  if begun == beginning then
    local text, given
    if kind <= 2 then
      local ms, units = string.match(word, '^(%d+):(%d+)$')
      local taken = ms and (ms - whole_ms) * 1048576 + (units - within_ms) or 0
      text, given = give_arrival(name, a, b, taken, given_text - given_before)
    elseif kind == 3 then
      text, given = give_count(name, cost, word)
    elseif kind == 4 then
      text, given = give_sliding(name, cost, word, a)
    else
      text, given = give_log(name, cost, taken_ms, a)
    end
    if text then
      any = 1
      write_given(name, text, mark_name, begun, given_text, given)
    end
  end
end
-- What was given back is no longer taken: repeating the request is a new one.
if any == 1 and record[1] ~= '' then call('DEL', record[1]) end
return { now_us, 0, any }
