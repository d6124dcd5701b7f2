-- Distinct values are a V and eight bytes of each, up to 1 536 of them; then the server's own HyperLogLog, in its dense
-- form, which tells without a change whether it has a value: 16 384 registers of six bits after a head of 16 bytes.
local exact_values, sketch_bytes = 1536, 12304
local empty_sketch_head = 'HYLL\0\0\0\0\0\0\0\0\0\0\0\128'
-- Registers that this call has raised.
local raised = {}

local function has_value(text, value)
  local from = 2
  while true do
    local found = string.find(text, value, from, true)
    if not found then return false end
    if found % 8 == 2 then return true end
    from = found + 1
  end
end

local function is_sketch(text)
  return #text == sketch_bytes and string.sub(text, 1, 5) == 'HYLL\0'
end

-- Whether a value was not seen in this window. A counter whose values were lost begins anew.
local function is_new(counter, place, c)
  if counter.count == 0 then return true end
  local key = floor(c / 65536)
  local text = values[key]
  if text and byte(text) == 86 and #text % 8 == 1 then return not has_value(text, ARGV[c % 65536]) end
  if text and is_sketch(text) then
    local register, rank = floor(place / 64), place % 64
    local bits = register * 6
    local first, second = byte(text, 17 + floor(bits / 8), 18 + floor(bits / 8))
    local held = floor((first + 256 * (second or 0)) / 2 ^ (bits % 8)) % 64
    return held < rank and (raised[key * 16384 + register] or 0) < rank
  end
  if text then foreign = foreign + 1 end
  counter.count = 0
  return true
end

-- Goes on by registers.
local function blur(name, text, life_ms)
  call('SET', name, empty_sketch_head .. string.rep('\0', sketch_bytes - 16), 'PX', life_ms)
  for from = 2, #text, 800 do
    local some = {}
    for position = from, math.min(from + 792, #text), 8 do some[#some + 1] = string.sub(text, position, position + 7) end
    call('PFADD', name, unpack(some))
  end
end

-- Notes a value in the server's memory at once: nothing after it can fail.
local function add_value(counter, place, c)
  local key, value = floor(c / 65536), ARGV[c % 65536]
  local name, life_ms = KEYS[key], life_until(counter.ends)
  if counter.count == 0 then
    values[key] = 'V' .. value
    call('SET', name, values[key], 'PX', life_ms)
    counter.count = 1
  elseif byte(values[key]) == 86 and #values[key] < 8 * exact_values then
    values[key] = values[key] .. value
    call('APPEND', name, value)
    counter.count = counter.count + 1
  else
    local is_exact = byte(values[key]) == 86
    if is_exact then blur(name, values[key], life_ms) end
    call('PFADD', name, value)
    if is_exact then values[key] = call('GET', name) end
    raised[key * 16384 + floor(place / 64)] = place % 64
    -- On the low side by three standard errors, and never less than before.
    counter.count = math.max(counter.count, floor(call('PFCOUNT', name) / 1.025))
  end
end

function distinct.look(counter, capacity, place, c)
  local new = is_new(counter, place, c)
  return not new or counter.count < capacity, counter.ends, counter.count, new and 1 or 0, 0
end

function distinct.take(counter, per_ms, place, c)
  if not is_new(counter, place, c) then return end
  if counter.count == 0 then counter.ends = aligned_end(per_ms) end
  add_value(counter, place, c)
end
