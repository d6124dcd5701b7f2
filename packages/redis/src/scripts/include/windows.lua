-- Windows of every kind: read from their keys, decided, and written back. The same formulas, in the same order and with
-- the same numbers, as Sluice's own algorithms, so that both agree to the last bit.
--
-- A plan is bytes: per request a head, then its windows.
--   head    steps, flags (1 id, 2 receipt), key of the id, key of the receipt, first of its own arguments
--   window  kind, group, whether it charges, keys of the counter, its block and its receipts' mark,
--           cost, capacity, a, b, c, block_for_ms, life_ms
--           A cost below 0, in a charge, is to be given back; `a` is what that is worth.
--   kinds   1 arrival    capacity: what it is worth  a: what the cost is worth  b: tolerance  c: furthest
--           2 the same, stored in the form for windows that reach far
--           3 count      a: per_ms, 0 for a one-off quota, −1 for a calendar's, which ends at b, the next at c, began at life
--           4 sliding    a: per_ms
--           5 log        a: per_ms
--           6 record     a: how many windows of its limit come before it; see `read_record`
--           7 distinct   a: per_ms  b: register × 64 + rank of the value  c: key of the values × 65536 + the value's argument
-- A counter is a table: `ahead`, `debt`, `stored` · `ends`, `count`, also of distinct values · `idle`, `current`, `previous` · `entries`,
-- `first`, `used` · `updated`, `denied`.
local pack, unpack_from, byte, format = struct.pack, struct.unpack, string.byte, string.format
local ceil, call = math.ceil, redis.call
local head_form, window_form = '<HBHHH', '<BHBHHHddddddd'
local window_bytes = 66
local once_ms = 2592000000
local slack_ms = 1000
local exact_entries = 256

local values = #KEYS > 0 and call('MGET', unpack(KEYS)) or {}
local counters, needed_ms, foreign = {}, {}, 0
-- What kind 7 does: see distinct.lua, which scripts that are asked about it include.
local distinct = {}

local function read_arrival(value)
  local counter = { ahead = 0 }
  local number = value and tonumber(value)
  if number and number % 1 == 0 then
    local distance = ((number < 0 and -number or number) - at) % span
    if distance <= passed then
      counter.ahead = distance
      counter.debt = number < 0
    end
    if number >= 0 then counter.stored = number end
  elseif value then
    local ahead, debt = read_wide(value)
    if ahead then
      counter.ahead, counter.debt = ahead, debt
    else
      foreign = foreign + 1
    end
  end
  return counter
end

-- Whole, and small enough for Lua to count exactly. False for infinity and for anything but a number.
local function is_whole(number)
  return number >= 0 and number <= span and number % 1 == 0
end

local function read_packed(value, tag, form, length)
  if not value then return 0, 0, 0 end
  if #value == length and byte(value) == tag then
    local _, one, two, three = unpack_from(form, value)
    if is_whole(one) and is_whole(two) and (length == 17 or is_whole(three)) then return one, two, three end
  end
  foreign = foreign + 1
  return 0, 0, 0
end

local function read_log(value)
  local counter = { entries = {}, first = 1, used = 0 }
  if not value then return counter end
  if byte(value) ~= 76 or #value % 16 ~= 1 then
    foreign = foreign + 1
    return counter
  end
  local entries = counter.entries
  local before = 0
  for position = 2, #value, 16 do
    local time, cost = unpack_from('<dd', value, position)
    counter.used = counter.used + cost
    -- Ours are in order.
    if not (time >= before and time <= span and is_whole(cost) and counter.used <= span) then
      foreign = foreign + 1
      return { entries = {}, first = 1, used = 0 }
    end
    before = time
    -- Dated after now by a clock that was set back since.
    if time > now_ms then time, counter.misfit = now_ms, true end
    entries[#entries + 1] = time
    entries[#entries + 1] = cost
  end
  return counter
end

-- What is recorded with a limit: when it last decided, and how much it has denied in a row since it last allowed
-- anything.
local function read_record(value)
  local updated, denied = string.match(value or '', '^(%d+) (%d+)$')
  updated, denied = tonumber(updated), tonumber(denied)
  if updated and updated <= span and denied <= span then return { updated = updated, denied = denied } end
  if value then foreign = foreign + 1 end
  return { updated = 0, denied = 0 }
end

-- Drops entries that no longer count.
local function settle(counter, per_ms)
  local entries, first = counter.entries, counter.first
  while first < #entries and now_ms - entries[first] >= per_ms do
    counter.used = counter.used - entries[first + 1]
    first = first + 2
  end
  counter.first = first
end

local function add_entry(counter, cost, per_ms)
  local entries = counter.entries
  counter.used = counter.used + cost
  if #entries > counter.first and entries[#entries - 1] == now_ms then
    entries[#entries] = entries[#entries] + cost
    return
  end
  entries[#entries + 1] = now_ms
  entries[#entries + 1] = cost
  if (#entries - counter.first + 1) / 2 <= exact_entries then return end
  -- Above 256 entries they merge into slots of per/256, each dated at its newest.
  local slot_ms, merged, slot = per_ms / exact_entries, {}, nil
  for i = counter.first, #entries, 2 do
    local slot_of_entry = floor(entries[i] / slot_ms)
    if slot_of_entry == slot then
      merged[#merged - 1] = entries[i]
      merged[#merged] = merged[#merged] + entries[i + 1]
    else
      merged[#merged + 1] = entries[i]
      merged[#merged + 1] = entries[i + 1]
      slot = slot_of_entry
    end
  end
  counter.entries, counter.first = merged, 1
end

local function aligned_end(per_ms)
  return (floor(floor(now_ms) / per_ms) + 1) * per_ms
end

-- The window as it stands now. No window ends later than one that begins now: if it seems to, the clock was set back.
-- Such a misfit is corrected, and a take writes the correction even if it denies: otherwise the subject would be locked
-- out until the clock had caught up.
local function counter_of(kind, key, a, c, life_ms)
  local counter = counters[key]
  if not counter then
    local value = values[key]
    if kind <= 2 then
      counter = read_arrival(value)
    elseif kind == 3 or kind == 7 then
      local ends, count = read_packed(value, 67, '<Bdd', 17)
      counter = { ends = ends, count = count }
    elseif kind == 4 then
      local idle, current, previous = read_packed(value, 83, '<Bddd', 25)
      counter = { idle = idle, current = current, previous = previous }
    elseif kind == 5 then
      counter = read_log(value)
    else
      counter = read_record(value)
    end
    counters[key] = counter
    -- For a calendar's window this is the beginning, and no window of that kind is longer than a month.
    needed_ms[key] = kind == 3 and a < 0 and 2 * once_ms or life_ms
  end
  if kind == 3 or kind == 7 then
    local latest = a > 0 and aligned_end(a) or a == 0 and ceil(now_ms) + once_ms or c
    if counter.ends > latest then counter.ends, counter.misfit = latest, true end
    if counter.ends <= now_ms then counter.count = 0 end
  elseif kind == 4 then
    local latest = aligned_end(a) + a
    if counter.idle > latest then counter.idle, counter.misfit = latest, true end
    if now_ms >= counter.idle then
      counter.idle, counter.current, counter.previous = aligned_end(a) + a, 0, 0
    elseif now_ms >= counter.idle - a then
      counter.idle, counter.current, counter.previous = counter.idle + a, 0, counter.current
    end
  elseif kind == 5 then
    settle(counter, a)
  end
  return counter
end

-- An arrival that no limit of the counter, or not this clock, can have left behind means: just used up.
local function clamp(counter, full, furthest)
  if counter.ahead > furthest and not (counter.debt and counter.ahead <= 2 * furthest) then
    counter.ahead, counter.debt, counter.stored, counter.misfit = full, nil, nil, true
  end
end

-- How long until an entry is freed that leaves more than there is now: the oldest that counts, unless the log is in
-- debt. If a take would merge entries, it is dated as it will be then. 0 for an empty log.
local function next_freed(counter, capacity, per_ms)
  local entries, first, freed = counter.entries, counter.first, counter.first
  if freed > #entries then return 0 end
  local used = counter.used - entries[freed + 1]
  while used >= capacity and freed + 2 < #entries do
    freed = freed + 2
    used = used - entries[freed + 1]
  end
  local dated_ms = entries[freed]
  if (#entries - first + 1) / 2 >= exact_entries and entries[#entries - 1] ~= now_ms then
    local slot_ms = per_ms / exact_entries
    local slot = floor(dated_ms / slot_ms)
    while freed + 2 < #entries and floor(entries[freed + 2] / slot_ms) == slot do freed = freed + 2 end
    dated_ms = freed + 1 == #entries and floor(now_ms / slot_ms) == slot and now_ms or entries[freed]
  end
  return ceil(per_ms - (now_ms - dated_ms))
end

-- Whether the cost fits, and how the window stands in four numbers for the reply. Corrects a misfit first.
local function look(kind, counter, cost, capacity, a, b, c)
  if kind <= 2 then
    clamp(counter, capacity, c)
    return counter.ahead + a <= b, counter.ahead, 0, 0, 0
  elseif kind == 3 then
    return counter.count + cost <= capacity, counter.ends, counter.count, 0, 0
  elseif kind == 4 then
    local until_end = counter.idle - a - now_ms
    local fits = cost <= capacity and counter.previous * until_end + (counter.current + cost - capacity) * a <= 0
    return fits, counter.idle, counter.current, counter.previous, 0
  elseif kind == 6 then
    return true, counter.updated, counter.denied, 0, 0
  elseif kind == 7 then
    return distinct.look(counter, capacity, b, c)
  end
  local entries, used, wait_ms = counter.entries, counter.used, 0
  if used + cost <= capacity or cost > capacity then
    -- Waiting changes nothing for this cost: the number says when more is left than now.
    wait_ms = next_freed(counter, capacity, a)
  else
    for i = counter.first, #entries, 2 do
      if used + cost <= capacity then break end
      used = used - entries[i + 1]
      wait_ms = ceil(a - (now_ms - entries[i]))
    end
  end
  local reset_ms = #entries > counter.first and ceil(a - (now_ms - entries[#entries - 1])) or 0
  return counter.used + cost <= capacity, counter.used, wait_ms, reset_ms, (#entries - counter.first + 1) / 2
end

-- The end that a count gets when it begins. Every use puts off a one-off quota's.
local function end_of_count(counter, a, b, c)
  if a == 0 then return ceil(now_ms) + once_ms end
  if counter.count > 0 then return counter.ends end
  if a > 0 then return aligned_end(a) end
  return now_ms < b and b or c
end

-- Whether a calendar's bounds, as the caller knew them, hold at the server's time.
local function within_bounds(kind, a, c, began_ms)
  return kind ~= 3 or a >= 0 or (now_ms >= began_ms and now_ms < c)
end

-- Takes a cost, whether it fits or not; debt is bounded by one more capacity.
local function take(kind, counter, cost, capacity, a, b, c)
  if kind <= 2 then
    local after = counter.ahead + a
    if after <= b then
      counter.ahead, counter.debt = after, nil
    else
      local bounded = math.min(after, b + capacity)
      -- It may be further ahead already, because of another tier.
      counter.ahead, counter.debt, counter.stored = math.max(counter.ahead, bounded), true, nil
    end
  elseif kind == 3 then
    counter.ends = end_of_count(counter, a, b, c)
    counter.count = math.max(counter.count, math.min(counter.count + cost, 2 * capacity))
  elseif kind == 4 then
    counter.current = math.max(counter.current, math.min(counter.current + cost, 2 * capacity))
  elseif kind == 7 then
    distinct.take(counter, a, b, c)
  else
    local bounded = math.min(cost, 2 * capacity - counter.used)
    if bounded > 0 then add_entry(counter, bounded, a) end
  end
end

-- Gives a cost back, debt first and down to nothing. Returns how much time that gave, if it is counted in time; nil if
-- there was nothing to give back. `is_empty` says whether anything is left.
local function credit(kind, counter, cost, a, b)
  if kind <= 2 then
    if counter.ahead == 0 then return nil end
    local given = math.min(a, counter.ahead)
    counter.ahead = counter.ahead - given
    if counter.ahead <= b then counter.debt = nil end
    return given
  elseif kind == 3 then
    if counter.count == 0 then return nil end
    counter.count = math.max(counter.count - cost, 0)
  elseif kind == 7 then
    return nil
  elseif kind == 4 then
    if counter.current + counter.previous == 0 then return nil end
    local rest = cost - math.min(cost, counter.current)
    if rest == 0 then
      counter.current = counter.current - cost
      return 0
    end
    -- Units of the previous window count for the part of them that has not faded: as many as are worth no more than the
    -- rest.
    local until_end = counter.idle - a - now_ms
    local units = floor(rest * a / until_end)
    if units * until_end > rest * a then units = units - 1 end
    counter.current, counter.previous = 0, math.max(counter.previous - units, 0)
  else
    local entries = counter.entries
    if #entries < counter.first then return nil end
    -- The newest go first.
    while cost > 0 and #entries > counter.first do
      local removed = math.min(entries[#entries], cost)
      cost, counter.used = cost - removed, counter.used - removed
      entries[#entries] = entries[#entries] - removed
      if entries[#entries] == 0 then entries[#entries], entries[#entries - 1] = nil, nil end
    end
  end
  return 0
end

local function is_empty(kind, counter)
  if kind <= 2 then return counter.ahead == 0 end
  if kind == 3 then return counter.count == 0 end
  if kind == 4 then return counter.current + counter.previous == 0 end
  return counter.used == 0
end

local function life_until(instant_ms)
  return ceil(instant_ms - now_ms) + slack_ms
end

local function log_text(counter)
  local parts, entries = { 'L' }, counter.entries
  for i = counter.first, #entries, 2 do parts[#parts + 1] = pack('<dd', entries[i], entries[i + 1]) end
  return table.concat(parts)
end

-- A value that can be incremented in place keeps its expiry, unless that must be renewed.
local function write_arrival(name, counter, life_ms)
  local arrival = counter.ahead < room and at + counter.ahead or counter.ahead - room
  local before = counter.stored
  if counter.debt then
    call('SET', name, arrival_text(counter.ahead, true), 'PX', life_ms)
  elseif not before or floor(before / renewal) ~= floor(arrival / renewal)
    or type(redis.pcall('INCRBY', name, arrival - before)) ~= 'number' then
    call('SET', name, arrival, 'PX', life_ms)
  end
end

local function write(kind, name, counter, a, life_ms)
  if kind == 1 then
    write_arrival(name, counter, life_ms)
  elseif kind == 2 then
    call('SET', name, (counter.debt and 'w-' or 'w') .. instant_text(counter.ahead), 'PX', life_ms)
  elseif kind == 3 or kind == 7 then
    call('SET', name, pack('<Bdd', 67, counter.ends, counter.count), 'PX', life_until(counter.ends))
  elseif kind == 4 then
    call('SET', name, pack('<Bddd', 83, counter.idle, counter.current, counter.previous), 'PX', life_until(counter.idle))
  elseif kind == 6 then
    call('SET', name, format('%.0f %.0f', counter.updated, counter.denied), 'PX', ceil(life_ms))
  else
    call('SET', name, log_text(counter), 'PX', life_until(now_ms + a))
  end
end

-- Counters that have to be written, and how.
local dirty, kind_of, a_of, life_of = {}, {}, {}, {}

local function touch(key, kind, a, life_ms)
  if not kind_of[key] then dirty[#dirty + 1] = key end
  kind_of[key], a_of[key], life_of[key] = kind, a, life_ms
end

local function write_all()
  for i = 1, #dirty do
    local key = dirty[i]
    write(kind_of[key], KEYS[key], counters[key], a_of[key], life_of[key])
  end
end

-- Every call asks one key for its expiry, and gives it one if it has none: for a counter, as long as it may be needed.
local function heal()
  if #KEYS == 0 then return 0 end
  local looked_at = now_us % #KEYS + 1
  if not values[looked_at] or call('PTTL', KEYS[looked_at]) ~= -1 then return 0 end
  call('PEXPIRE', KEYS[looked_at], needed_ms[looked_at] or once_ms)
  return 1
end

-- Keys that hold anything but text look absent until they are asked for their type.
local function count_foreign()
  local absent = {}
  for key = 1, #KEYS do
    if not values[key] then absent[#absent + 1] = KEYS[key] end
  end
  if #absent == 0 then return foreign end
  return foreign + call('EXISTS', unpack(absent))
end
