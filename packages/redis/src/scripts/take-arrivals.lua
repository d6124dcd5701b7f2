--- Takes costs from counters of arrival times, one window each: the commonest request, many at once.
---
--- KEYS: the counters, each of them once
--- ARGV[1]: deadline in whole milliseconds since 1970 by this server's clock; 0 for none
--- ARGV[2]: the checks, two bytes each below 128: number of its rate, number of its key. Empty where each check has a key
---          of its own, in their order, and all have the first rate
--- ARGV[3]: how many rates there are
--- ARGV[4]: the rates, five arguments each: what the cost and what the whole capacity is worth, tolerance and furthest, in
---          units of arrival time, and life in milliseconds
--- returns: { now_us, 1 } when late, else { now_us, 0, foreign, healed, { ahead… } }: how far ahead of now each check found
---          its counter, in units. It was taken if ahead + worth is within the tolerance.
--- include: server-time, refuse-when-late, arrival-units

local call, try, byte, keys = redis.call, redis.pcall, string.byte, KEYS

-- The minute that now is in, where nearly all that is written was and will be.
local minute = floor(at / renewal) * renewal
local next_minute = minute + renewal

local worth_text, worth, full, tolerance, furthest, life = {}, {}, {}, {}, {}, {}
-- What one check makes of an idle counter, where it fits and that is still within the minute.
local once = {}
local longest = 0
for rate = 1, ARGV[3] + 0 do
  local first = 5 * rate - 1
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

-- Everything that could be wrong is looked at before the first write. A counter that is asked for several times in one call
-- is kept in `values` as it was left.
local values = call('MGET', unpack(keys))
local foreign, healed = 0, 0

-- One counter of every call is asked for its end, and is given one if it has none.
local looked_at = now_us % #keys + 1
if values[looked_at] and call('PTTL', keys[looked_at]) == -1 then
  call('PEXPIRE', keys[looked_at], longest)
  healed = 1
end

-- Adding reads digits once, `tonumber` twice, and other text ends it: then each is looked at by itself, and what has another
-- form is kept in `texts`.
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
local all_read, absent = pcall(read_digits, values, #keys)
local texts
if not all_read then
  texts, absent = {}, 0
  for key = 1, #keys do
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

-- Keys that hold something else than text look absent until somebody asks.
if absent > 0 then
  local names = {}
  for key = 1, #keys do
    if not values[key] and not (texts and texts[key]) then names[#names + 1] = keys[key] end
  end
  foreign = call('EXISTS', unpack(names))
end

local checks = ARGV[2] ~= '' and { byte(ARGV[2], 1, -1) }
-- Where each check has a key of its own, nobody needs its value any more.
local aheads = checks and {} or values
local rate = 1
local cost_text, cost, most, far, fresh = worth_text[1], worth[1], tolerance[1], furthest[1], once[1]
for i = 1, checks and #checks / 2 or #keys do
  local key = i
  if checks then
    key = checks[2 * i]
    -- Almost always the same one.
    if checks[2 * i - 1] ~= rate then
      rate = checks[2 * i - 1]
      cost_text, cost, most, far, fresh = worth_text[rate], worth[rate], tolerance[rate], furthest[rate], once[rate]
    end
  end
  local value = values[key]
  if fresh and value and value < at and value >= minute and value % 1 == 0 then
    -- Idle since some time within this minute: what is done below, for the commonest find in a third of the steps.
    if try('INCRBY', keys[key], fresh - value) ~= fresh then call('SET', keys[key], fresh, 'PX', life[rate]) end
    values[key] = fresh
    aheads[i] = 0
  else
    -- How far ahead of now it is, and what it can be added to where it is.
    local from, before, debt = 0, nil, false
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
    -- Further ahead than any limit of the counter allows cannot be by one of them, or not by this clock, unless it is debt.
    -- It is brought back to just used up, for good: otherwise it would be so until that clock or that limit had caught up.
    local misfit = from > far and not (debt and from <= 2 * far)
    if misfit then from, before = full[rate], nil end
    local after = from + cost
    if after <= most or misfit then
      if after > most then after = from end
      local arrival = after < room and at + after or after - room
      -- Digits that Lua reads and the server does not, such as 1e5, are not ours and are written over.
      local added = before
        and (before >= minute and arrival < next_minute and before < next_minute and arrival >= minute
          or floor(before / renewal) == floor(arrival / renewal))
        and try('INCRBY', keys[key], from > 0 and cost_text or arrival - before) == arrival
      if not added then call('SET', keys[key], arrival, 'PX', life[rate]) end
      values[key] = arrival
    end
    aheads[i] = from
  end
end
return { now_us, 0, foreign, healed, aheads }
