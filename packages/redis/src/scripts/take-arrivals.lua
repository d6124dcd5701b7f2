--- Takes costs from counters of arrival times, one window each: the commonest request, many at once.
---
--- KEYS: the counters, each of them once
--- ARGV[1]: deadline in whole milliseconds since 1970 by this server's clock; 0 for none
--- ARGV[2]: the checks, two bytes each below 128: number of its rate, number of its key
--- ARGV[3]: how many rates there are
--- ARGV[4]: the rates, five arguments each: what the cost and what the whole capacity is worth, tolerance and furthest, in
---          units of arrival time, and life in milliseconds
--- returns: { now_us, 1 } when late, else { now_us, 0, foreign, healed, ahead… }: how far ahead of now each check found
---          its counter, in units. It was taken if ahead + worth is within the tolerance.
--- include: server-time, refuse-when-late, arrival-units

local call, try, byte = redis.call, redis.pcall, string.byte

local worth_text, worth, full, tolerance, furthest, life = {}, {}, {}, {}, {}, {}
local longest = 0
for rate = 1, ARGV[3] + 0 do
  local first = 5 * rate - 1
  worth_text[rate] = ARGV[first]
  worth[rate] = ARGV[first] + 0
  full[rate] = ARGV[first + 1] + 0
  tolerance[rate] = ARGV[first + 2] + 0
  furthest[rate] = ARGV[first + 3] + 0
  life[rate] = ARGV[first + 4]
  if life[rate] + 0 > longest then longest = life[rate] + 0 end
end

-- Everything that could be wrong is looked at before the first write. A counter that is asked for several times in one call
-- is kept in `values` as it was left.
local values = call('MGET', unpack(KEYS))
local reply = { now_us, 0, 0, 0 }

-- Keys that hold something else than text look absent until somebody asks.
local foreign, absent = 0, nil
for key = 1, #KEYS do
  if not values[key] then
    absent = absent or {}
    absent[#absent + 1] = KEYS[key]
  end
end
if absent then foreign = call('EXISTS', unpack(absent)) end

-- One counter of every call is asked for its end, and is given one if it has none.
local looked_at = now_us % #KEYS + 1
if values[looked_at] and call('PTTL', KEYS[looked_at]) == -1 then
  call('PEXPIRE', KEYS[looked_at], longest)
  reply[4] = 1
end

-- The minute that now is in, where nearly all that is written was and will be.
local minute = floor(at / renewal) * renewal
local next_minute = minute + renewal

local checks = { byte(ARGV[2], 1, -1) }
local cost_text, cost, most, far
local rate = 0
for i = 1, #checks / 2 do
  local key = checks[2 * i]
  -- Almost always the same one.
  if checks[2 * i - 1] ~= rate then
    rate = checks[2 * i - 1]
    cost_text, cost, most, far = worth_text[rate], worth[rate], tolerance[rate], furthest[rate]
  end
  local value = values[key]
  -- How far ahead of now it is, and what it can be added to where it is.
  local from, before, debt = 0, nil, false
  if value then
    local number = tonumber(value)
    if number and number % 1 == 0 then
      if number >= 0 then
        before, from = number, number - at
      else
        debt, from = true, -number - at
      end
      if from < 0 then from = from + span end
      if from > passed then from = 0 end
    else
      from, debt = read_wide(value)
      if not from then
        from, foreign = 0, foreign + 1
      end
    end
  end
  -- Further ahead than any limit of the counter allows cannot be by one of them, or not by this clock, unless it is debt. It is
  -- brought back to just used up, for good: otherwise it would be so until that clock or that limit had caught up.
  local misfit = from > far and not (debt and from <= 2 * far)
  if misfit then from, before = full[rate], nil end
  reply[i + 4] = from
  local after = from + cost
  if after <= most or misfit then
    if after > most then after = from end
    local arrival = after < room and at + after or after - room
    local added
    -- Digits that Lua reads and the server does not, such as 1e5, are not ours and are written over.
    if before and (before >= minute and arrival < next_minute and before < next_minute and arrival >= minute
      or floor(before / renewal) == floor(arrival / renewal)) then
      added = type(try('INCRBY', KEYS[key], from > 0 and cost_text or arrival - before)) == 'number'
    end
    if not added then call('SET', KEYS[key], arrival, 'PX', life[rate]) end
    values[key] = arrival
  end
end
reply[3] = foreign
return reply
