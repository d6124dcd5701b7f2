--- Settles a hold: reports what its work has cost, extends it, ends it when its time is up, or undoes it.
---
--- KEYS: the hold, and the lane's index of holds. The hold names its counters, which share its slot.
--- ARGV[1]: the hold's name in the index
--- ARGV[2]: `commit`, `extend`, `expire` or `undo`
--- ARGV[3]: the cost so far, or for how many ms from now it is held at least
--- ARGV[4]: 1 if that was the last report
--- returns: { now_us, 0, state, amount, actual, expired, expires_us, replayed }; the state is 0 if it is not known
--- include: server-time, arrival-units, hold-record, windows, give-arrival, give-counts, noting-holds

local name, action, number = ARGV[1], ARGV[2], ARGV[3] + 0

local function answer(replayed)
  if not hold then return { now_us, 0, 0, 0, 0, 0, 0, 0 } end
  return { now_us, 0, hold[2], hold[3], hold[4], hold[5], hold[6], replayed and 1 or 0 }
end

local function place_of(text)
  local word, before, behind = string.match(text or '', '^(%d+:%d+) (%d+) (%d+)$')
  return word, tonumber(before), tonumber(behind)
end

-- What was given back at `ends` moves what comes after it, and not what comes before.
local function move_others(noted_in, ends, given_before, given, life_ms)
  local all, moved = redis.pcall('HGETALL', noted_in), {}
  for i = 1, #all, 2 do
    local word, before, behind = place_of(all[i + 1])
    if word and all[i] ~= name and read_ahead(word) - (given_before - before - behind) < ends then
      moved[#moved + 1], moved[#moved + 2] = all[i], place_text(word, before, behind + given)
    end
  end
  if #moved > 0 then note(life_ms, 'HSET', noted_in, unpack(moved)) end
end

local function worth(cost, limit, per_ms)
  return ceil(cost * per_ms / limit * 1048576)
end

-- Gives back so much of a window, as far as its moment has not passed. Returns how much that was, in whole units.
local function give_back(key, window, cost)
  local counter_name, mark_name, kind, _, a, b, taken_ms, word, beginning, before, _, _, life_ms, limit, per_ms, noted_in =
    unpack(window)
  local begun, given_text = read_mark(mark_name)
  if begun ~= beginning then return 0 end
  local text, given, moved, is_ordered
  if kind <= 2 then
    local _, _, behind = place_of(redis.pcall('HGET', noted_in, name) or '')
    is_ordered = behind ~= nil
    moved = given_text - before - (behind or 0)
    text, given = give_arrival(counter_name, worth(cost, limit, per_ms), b, read_ahead(word), moved)
  else
    text, given = give_counted(kind, counter_name, cost, a, taken_ms, word)
  end
  if not text then return 0 end
  write_given(counter_name, text, mark_name, begun, given_text, given)
  values[key] = text
  if kind > 2 then return cost end
  if is_ordered then move_others(noted_in, read_ahead(word) - moved, given_text + 0, given, life_ms) end
  return math.min(cost, ceil(given / 1048576 * limit / per_ms))
end

local function charge(key, window, cost)
  local _, _, kind, _, a, b, _, _, _, _, capacity, c, life_ms, limit, per_ms = unpack(window)
  if kind <= 2 then a = worth(cost, limit, per_ms) end
  -- A calendar's windows are known as of when it was held; later ones are about as long.
  while kind == 3 and a < 0 and now_ms >= c do
    life_ms, b, c = b, c, c + (c - b)
  end
  local counter = counter_of(kind, key, a, c, life_ms)
  look(kind, counter, cost, capacity, a, b, c)
  take(kind, counter, cost, capacity, a, b, c)
  touch(key, kind, a, life_ms)
end

-- Whatever stands for more than this in the counters is given back.
local function give_all_back(actual)
  for i = head_length + 1, #hold do
    local window = hold[i]
    if window[4] > actual then window[4] = window[4] - give_back(i - head_length, window, window[4] - actual) end
  end
end

-- It is held no longer.
local function release()
  redis.pcall('ZREM', index_name, name)
  for i = head_length + 1, #hold do
    if hold[i][16] ~= '' then redis.pcall('HDEL', hold[i][16], name) end
  end
end

local function finish(state)
  if hold[2] == 1 then release() end
  hold[2], hold[7] = state, now_us + remember_hold_ms * 1000
end

local function store()
  local until_us = hold[2] == 1 and hold[6] + remember_hold_ms * 1000 or hold[7]
  call('SET', hold_name, cmsgpack.pack(hold), 'PX', ceil((until_us - now_us) / 1000) + slack_ms)
end

if hold and hold[2] > 1 and hold[7] <= now_us then hold = nil end
if not hold then
  redis.pcall('ZREM', index_name, name)
  return answer()
end

if action == 'undo' then
  if hold[2] ~= 1 then return answer() end
  give_all_back(0)
  release()
  call('DEL', hold_name)
  -- It was never made: repeating the request is a new one.
  if hold[1] ~= '' then call('DEL', hold[1]) end
  return answer()
end

if hold[2] == 1 and hold[6] <= now_us then
  give_all_back(hold[4])
  hold[5] = 1
  finish(2)
  store()
end
if hold[2] == 3 or action == 'expire' then return answer(hold[2] == 3) end

if action == 'extend' then
  if hold[2] == 1 and now_us + number * 1000 > hold[6] then
    hold[6] = now_us + number * 1000
    note_expiry(index_name, name, hold[6])
    store()
  end
  return answer()
end

hold[4] = math.max(hold[4], number)
for i = head_length + 1, #hold do
  local window = hold[i]
  if hold[4] > window[4] then
    charge(i - head_length, window, hold[4] - window[4])
    window[4] = hold[4]
  end
end
write_all()
if ARGV[4] == '1' then
  if hold[2] == 1 then give_all_back(hold[4]) end
  finish(3)
end
store()
return answer()
