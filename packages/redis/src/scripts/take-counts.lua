--- Takes costs from fixed and sliding windows, and from arrival times next to them, each request all or nothing: many at once.
---
--- KEYS: the counters, each of them once
--- ARGV[1]: deadline in whole milliseconds since 1970 by this server's clock; 0 for none
--- ARGV[2]: the requests in bytes below 128: how many windows it has, and of each the numbers of its shape and its key. Empty
---          where each has one window, the first shape, and a separate key, in their order
--- ARGV[3]: what kind each shape is of, a digit each, as in windows.lua: 1 arrival, 3 count, 4 sliding
--- ARGV[4]: the shapes, five arguments each. Arrival: as in take-arrivals. Count and sliding: cost, capacity, length of the window in
---          milliseconds (0 for a one-off quota), 0, and life in milliseconds
--- returns: { now_us, 1 } when late, else { now_us, 0, foreign, healed, { number… } }: how each window was found. Arrival: how far
---          ahead of now, in units. Count: when it ends, and the count. Sliding: when it is idle, the current and the previous count
--- include: server-time, refuse-when-late, arrival-units

local call, keys, ceil, byte = redis.call, KEYS, math.ceil, string.byte
local pack, unpack_from = struct.pack, struct.unpack
local once_ms, slack_ms = 2592000000, 1000

-- Of each shape: what the cost is worth, how much there may be, and for arrivals what a misfit is brought back to and how far ahead they
-- may be. `latest` is when a window that begins now ends, or is idle: none ends later, unless the clock was set back.
local kinds = { byte(ARGV[3], 1, -1) }
local worth, most, full, furthest, per_ms, latest, life = {}, {}, {}, {}, {}, {}, {}
local longest = 0
for shape = 1, #kinds do
  local first = 5 * shape - 1
  local kind = kinds[shape] - 48
  kinds[shape], worth[shape], life[shape] = kind, ARGV[first] + 0, ARGV[first + 4]
  if life[shape] + 0 > longest then longest = life[shape] + 0 end
  if kind == 1 then
    full[shape], most[shape], furthest[shape] = ARGV[first + 1] + 0, ARGV[first + 2] + 0, ARGV[first + 3] + 0
  else
    local per = ARGV[first + 2] + 0
    most[shape], per_ms[shape] = ARGV[first + 1] + 0, per
    local ends = per > 0 and (floor(whole_ms / per) + 1) * per or ceil(now_ms) + once_ms
    latest[shape] = kind == 4 and ends + per or ends
  end
end

local values = call('MGET', unpack(keys))
local foreign, healed, absent = 0, 0, 0

-- Every call checks whether one of its counters expires, and lets it expire if not.
local looked_at = now_us % #keys + 1
if values[looked_at] and call('PTTL', keys[looked_at]) == -1 then
  call('PEXPIRE', keys[looked_at], longest)
  healed = 1
end

-- A counter as it stands, by its key: what it was read as, and what requests of this call have made of it. Arrivals: how far ahead of
-- now; whether it is debt, and what can be added to where it is, stand in `two` and `three`. A change is written at the end.
local one, two, three, stored, shape_of, changed, dirty = {}, {}, {}, {}, {}, {}, {}

-- Whole, and not more than Lua counts exactly. False for infinity and NaN.
local function is_whole(number)
  return number >= 0 and number <= span and number % 1 == 0
end

local function read(key, kind)
  local value = values[key]
  if not value then
    one[key], two[key], three[key] = 0, kind ~= 1 and 0, kind ~= 1 and 0
    absent = absent + 1
    return
  end
  if kind == 3 then
    if #value == 17 and byte(value) == 67 then
      local _, ends, count = unpack_from('<Bdd', value)
      if is_whole(ends) and is_whole(count) then
        one[key], two[key], stored[key] = ends, count, ends
        return
      end
    end
  elseif kind == 4 then
    if #value == 25 and byte(value) == 83 then
      local _, idle, current, previous = unpack_from('<Bddd', value)
      if is_whole(idle) and is_whole(current) and is_whole(previous) then
        one[key], two[key], three[key], stored[key] = idle, current, previous, idle
        return
      end
    end
  else
    local number = tonumber(value)
    if number and number % 1 == 0 then
      local ahead = ((number < 0 and -number or number) - at) % span
      local is_passed = ahead > passed
      one[key], two[key], three[key] = is_passed and 0 or ahead, not is_passed and number < 0, number >= 0 and number
      return
    end
    local ahead, debt = read_wide(value)
    if ahead then
      one[key], two[key], three[key] = ahead, debt, false
      return
    end
  end
  foreign = foreign + 1
  one[key], two[key], three[key] = 0, kind ~= 1 and 0, kind ~= 1 and 0
end

local function change(key, shape)
  if not changed[key] then dirty[#dirty + 1] = key end
  changed[key], shape_of[key] = true, shape
end

local requests = ARGV[2] ~= '' and { byte(ARGV[2], 1, -1) }
local reply, replied, position = {}, 0, 0
local last = requests and #requests or #keys
local request_shapes, request_keys = {}, {}
while position < last do
  local count = 1
  if requests then count = requests[position + 1] end
  local fits = true
  for i = 1, count do
    local shape, key = 1, position + 1
    if requests then shape, key = requests[position + 2 * i], requests[position + 2 * i + 1] end
    request_shapes[i], request_keys[i] = shape, key
    local kind = kinds[shape]
    if not one[key] then read(key, kind) end
    if kind == 3 then
      -- A misfit is brought back, and that is written even where the request is denied: otherwise it would be found so again and
      -- again, until the clock had caught up, and the subject be locked out.
      if one[key] > latest[shape] then
        one[key] = latest[shape]
        change(key, shape)
      end
      if one[key] <= now_ms then two[key] = 0 end
      if two[key] + worth[shape] > most[shape] then fits = false end
      reply[replied + 1], reply[replied + 2] = one[key], two[key]
      replied = replied + 2
    elseif kind == 4 then
      local idle, per = one[key], per_ms[shape]
      if idle > latest[shape] then
        idle = latest[shape]
        one[key] = idle
        change(key, shape)
      end
      if now_ms >= idle then
        idle = latest[shape]
        one[key], two[key], three[key] = idle, 0, 0
      elseif now_ms >= idle - per then
        idle = idle + per
        one[key], two[key], three[key] = idle, 0, two[key]
      end
      local cost, capacity = worth[shape], most[shape]
      if cost > capacity or three[key] * (idle - per - now_ms) + (two[key] + cost - capacity) * per > 0 then fits = false end
      reply[replied + 1], reply[replied + 2], reply[replied + 3] = idle, two[key], three[key]
      replied = replied + 3
    else
      local ahead, far = one[key], furthest[shape]
      if ahead > far and not (two[key] and ahead <= 2 * far) then
        ahead = full[shape]
        one[key], two[key], three[key] = ahead, false, false
        change(key, shape)
      end
      if ahead + worth[shape] > most[shape] then fits = false end
      replied = replied + 1
      reply[replied] = ahead
    end
  end
  if fits then
    for i = 1, count do
      local shape, key = request_shapes[i], request_keys[i]
      local kind = kinds[shape]
      if kind == 1 then
        one[key], two[key] = one[key] + worth[shape], false
      else
        -- A count gets its end when it begins. A one-off quota's is put off by every use.
        if kind == 3 and (two[key] == 0 or per_ms[shape] == 0) then one[key] = latest[shape] end
        two[key] = two[key] + worth[shape]
      end
      change(key, shape)
    end
  end
  position = position + (requests and 1 + 2 * count or 1)
end

-- Keys that hold something other than text look absent to MGET.
if absent > 0 then
  local names = {}
  for key = 1, #keys do
    if not values[key] then names[#names + 1] = keys[key] end
  end
  foreign = foreign + call('EXISTS', unpack(names))
end

-- If the window has not changed its end, the key keeps its own, which follows from it.
for i = 1, #dirty do
  local key = dirty[i]
  local shape = shape_of[key]
  local kind = kinds[shape]
  if kind == 1 then
    local ahead, before = one[key], three[key]
    local arrival = ahead < room and at + ahead or ahead - room
    if two[key] then
      call('SET', keys[key], arrival_text(ahead, true), 'PX', life[shape])
    elseif not before or floor(before / renewal) ~= floor(arrival / renewal)
      or redis.pcall('INCRBY', keys[key], arrival - before) ~= arrival then
      call('SET', keys[key], arrival, 'PX', life[shape])
    end
  else
    local text = kind == 3 and pack('<Bdd', 67, one[key], two[key]) or pack('<Bddd', 83, one[key], two[key], three[key])
    if stored[key] == one[key] then
      call('SET', keys[key], text, 'KEEPTTL')
    else
      call('SET', keys[key], text, 'PX', ceil(one[key] - now_ms) + slack_ms)
    end
  end
end
return { now_us, 0, foreign, healed, reply }
