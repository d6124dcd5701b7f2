--- Takes costs from counters of arrival times, each request all or nothing: the commonest requests, many at once.
---
--- KEYS: the counters, each once, then marks of those that are held
--- ARGV[1]: deadline in whole milliseconds since 1970 by this server's clock; 0 for none
--- ARGV[2]: the requests in bytes below 128: the number of windows, and for each the numbers of its rate and its key.
---          Empty if each has one window, the first rate, and a separate key, in order. A request that is held, because
---          it may be given back, has 64 windows more, and for each the number of its mark as well
--- ARGV[3]: how many marks there are
--- ARGV[4]: how many rates there are
--- ARGV[5]: the rates, five arguments each: what the cost and the whole capacity are worth, tolerance and furthest, in
---          units of arrival time, and life in milliseconds. After them, if there are marks: the name of a new mark, and
---          for how many milliseconds marks have to last
--- returns: { now_us, 1 } when late, else { now_us, 0, foreign, healed, { ahead… }, { held… } }: how far ahead of now
---          each window was found, in units. A request was taken if ahead + worth is within the tolerance in all of its
---          windows. For each window that is held, if it was taken: its mark's name, and how much was given back by then;
---          else two empty texts
--- include: server-time, refuse-when-late, arrival-units

local call, try, byte, keys = redis.call, redis.pcall, string.byte, KEYS

-- The current minute, where nearly all arrivals are and will be.
local minute = floor(at / renewal) * renewal
local next_minute = minute + renewal

local worth_text, worth, full, tolerance, furthest, life = {}, {}, {}, {}, {}, {}
-- What one check makes of an idle counter, if it fits and is still within the minute.
local once = {}
local longest = 0
local rates, marks = ARGV[4] + 0, ARGV[3] + 0
for rate = 1, rates do
  local first = 5 * rate
  local cost = ARGV[first] + 0
  worth_text[rate] = ARGV[first]
  worth[rate] = cost
  full[rate] = ARGV[first + 1] + 0
  tolerance[rate] = ARGV[first + 2] + 0
  furthest[rate] = ARGV[first + 3] + 0
  life[rate] = ARGV[first + 4]
  if life[rate] + 0 > longest then longest = life[rate] + 0 end
  once[rate] = cost <= tolerance[rate] and cost < room and at + cost < next_minute and at + cost
end

-- Keys after these are marks.
local counters = #keys - marks

-- Everything that could be wrong is checked before the first write. A counter that is asked for several times in one
-- call is kept in `values` as it was left.
local values = call('MGET', unpack(keys))
local foreign, healed = 0, 0

-- Every call asks one counter for its expiry, and gives it one if it has none.
local looked_at = now_us % counters + 1
if values[looked_at] and call('PTTL', keys[looked_at]) == -1 then
  call('PEXPIRE', keys[looked_at], longest)
  healed = 1
end

-- Adding reads digits once, `tonumber` twice, and other text ends it: then each value is examined separately, and those
-- in another form are kept in `texts`.
local function read_digits(values, count)
  local absent = 0
  for key = 1, count do
    local value = values[key]
    if value then
      values[key] = value + 0
    else
      absent = absent + 1
    end
  end
  return absent
end
local all_read, absent = pcall(read_digits, values, counters)
local texts
if not all_read then
  texts, absent = {}, 0
  for key = 1, counters do
    local value = values[key]
    local number = value and tonumber(value)
    if not value then
      absent = absent + 1
    elseif number then
      values[key] = number
    else
      texts[key], values[key] = value, false
    end
  end
end

-- Keys that hold anything but text look absent until they are asked for their type.
if absent > 0 then
  local names = {}
  for key = 1, counters do
    if not values[key] and not (texts and texts[key]) then names[#names + 1] = keys[key] end
  end
  foreign = call('EXISTS', unpack(names))
end

local requests = ARGV[2] ~= '' and { byte(ARGV[2], 1, -1) }
-- If each request has a separate key, no other needs its value, and the reply for it takes its place.
local aheads = requests and {} or values
-- What was found for the windows of a request with several, no two of which share a key: reused for the next one.
local froms, befores, misfits = {}, {}, {}

-- A mark records what happens to a counter while something of it is held. It lasts twice as long as it has to, so it is
-- seldom renewed.
local held = marks > 0 and {} or nil
local function hold(mark)
  local new_name, life = ARGV[5 * rates + 5], ARGV[5 * rates + 6]
  local beginning, given = string.match(values[mark] or '', '^([%w_-]+) (%d+)$')
  if not beginning then
    beginning, given = new_name, '0'
    values[mark] = beginning .. ' 0'
    call('SET', keys[mark], values[mark], 'PX', 2 * life)
  elseif call('PTTL', keys[mark]) < life + 0 then
    call('PEXPIRE', keys[mark], 2 * life)
  end
  return beginning, given
end

-- How many bytes describe a window, and what may take the shortcut: nothing that is held.
local width, shortcuts, none = 2, once, {}
local position, replied = 0, 0
local last = requests and #requests or counters
while position < last do
  local count, rate, key = 1, 1, position + 1
  if requests then
    count, rate, key = requests[position + 1], requests[position + 2], requests[position + 3]
    width, shortcuts = 2, once
    if count > 64 then
      count, width, shortcuts = count - 64, 3, none
    end
  end
  local value, fresh = values[key], shortcuts[rate]
  if count == 1 and fresh and value and value < at and value >= minute and value % 1 == 0 then
    -- One counter, idle since some time within this minute: the same as below, for the commonest case in half the
    -- steps.
    if try('INCRBY', keys[key], fresh - value) ~= fresh then call('SET', keys[key], fresh, 'PX', life[rate]) end
    values[key] = fresh
    aheads[replied + 1] = 0
  else
    -- How far ahead of now it is, what it can be incremented from in place, and whether it had to be corrected.
    local from, before, misfit
    local fits = true
    for i = 1, count do
      if i > 1 then
        rate, key = requests[position + width * (i - 1) + 2], requests[position + width * (i - 1) + 3]
        value = values[key]
      end
      from, before = 0, nil
      local debt, far = false, furthest[rate]
      if value then
        if value % 1 ~= 0 then
          foreign = foreign + 1
        else
          if value >= 0 then
            before, from = value, value - at
          else
            debt, from = true, -value - at
          end
          if from < 0 then from = from + span end
          if from > passed then from = 0 end
        end
      elseif texts and texts[key] then
        from, debt = read_wide(texts[key])
        if not from then
          from, foreign = 0, foreign + 1
        end
      end
      -- Further ahead than any limit of the counter allows cannot be the work of one of them, or not by this clock,
      -- unless it is debt. It is corrected to just used up, for good: otherwise it would stay wrong until that clock or
      -- limit had caught up.
      misfit = from > far and not (debt and from <= 2 * far)
      if misfit then from, before = full[rate], nil end
      if from + worth[rate] > tolerance[rate] then fits = false end
      if count > 1 then froms[i], befores[i], misfits[i] = from, before, misfit end
      aheads[replied + i] = from
    end
    for i = 1, count do
      if count > 1 then
        rate, key = requests[position + width * (i - 1) + 2], requests[position + width * (i - 1) + 3]
        from, before, misfit = froms[i], befores[i], misfits[i]
      end
      if fits or misfit then
        local after = fits and from + worth[rate] or from
        local arrival = after < room and at + after or after - room
        -- Digits that Lua reads and the server does not, such as 1e5, are not ours and are overwritten.
        local added = before
          and (before >= minute and arrival < next_minute and before < next_minute and arrival >= minute
            or floor(before / renewal) == floor(arrival / renewal))
          and try('INCRBY', keys[key], from > 0 and worth_text[rate] or arrival - before) == arrival
        if not added then call('SET', keys[key], arrival, 'PX', life[rate]) end
        if requests then values[key] = arrival end
      end
      if width == 3 then
        local beginning, given = '', ''
        if fits then beginning, given = hold(counters + requests[position + 3 * i + 1]) end
        held[#held + 1], held[#held + 2] = beginning, given
      end
    end
  end
  replied = replied + count
  position = position + (requests and 1 + width * count or 1)
end
return { now_us, 0, foreign, healed, aheads, held }
