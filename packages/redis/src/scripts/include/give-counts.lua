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

-- Gives back what was taken from a window that is not counted in time: the same as `give_arrival`.
local function give_counted(kind, name, cost, a, taken_ms, word)
  if kind == 3 then return give_count(name, cost, word) end
  if kind == 4 then return give_sliding(name, cost, word, a) end
  return give_log(name, cost, taken_ms, a)
end
