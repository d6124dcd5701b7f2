--- Takes costs from counters of arrival times, one window each: the commonest request, many at once.
---
--- KEYS: the counters, each of them once
--- ARGV[1]: deadline in whole milliseconds since 1970 by this server's clock; 0 for none
--- ARGV[2]: the checks, two bytes each: number of its rate, number of its key
--- ARGV[3]: how many rates there are
--- ARGV[4]: the rates, four arguments each: what the cost is worth, tolerance, how often the end is renewed (all in units
---          of arrival time), and life in milliseconds
--- returns: { now_us, 1 } when late, else { now_us, 0, foreign, healed, ahead… }: how far ahead of now each check found
---          its counter, in units. It was taken if ahead + worth is within the tolerance.
--- include: server-time, refuse-when-late, arrival-units

local call, try, byte = redis.call, redis.pcall, string.byte

local worth_text, worth, tolerance, renewal, life = {}, {}, {}, {}, {}
for rate = 1, ARGV[3] + 0 do
  local first = 4 * rate
  worth_text[rate] = ARGV[first]
  worth[rate] = ARGV[first] + 0
  tolerance[rate] = ARGV[first + 1] + 0
  renewal[rate] = ARGV[first + 2] + 0
  life[rate] = ARGV[first + 3]
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
  call('PEXPIRE', KEYS[looked_at], life[1])
  reply[4] = 1
end

local checks = ARGV[2]
for i = 1, #checks / 2 do
  local rate, key = byte(checks, 2 * i - 1, 2 * i)
  local value, most = values[key], tolerance[rate]
  -- How far ahead of now it is, and what it can be added to where it is. Further ahead than the limit allows cannot be by this
  -- limit, or not by this clock, unless it is debt: then it is just used up.
  local from, before = 0, nil
  if value then
    local number = tonumber(value)
    if number and number % 1 == 0 then
      if number >= 0 then
        before = number
        local distance = (number - at) % span
        if distance <= passed then
          if distance <= most then from = distance else from, before = most, nil end
        end
      else
        local distance = (-number - at) % span
        if distance <= passed then from = distance <= 2 * most and distance or most end
      end
    else
      local wide = byte(value) == 119 and tonumber(string.sub(value, 2))
      if wide and wide % 1 == 0 then
        local distance = (wide < 0 and -wide or wide) - at_wide
        if distance > 0 and distance < passed / 1024 then
          from = distance * 1024
          if from > most and not (wide < 0 and from <= 2 * most) then from = most end
        end
      else
        foreign = foreign + 1
      end
    end
  end
  reply[i + 4] = from
  local after = from + worth[rate]
  if after <= most then
    local arrival = at + after
    if arrival >= span then arrival = arrival - span end
    local added
    -- The end is renewed where the arrival passes a multiple of `renewal`. Digits that Lua reads and the server does not, such as
    -- 1e5, are not ours and are written over.
    if before and floor(before / renewal[rate]) == floor(arrival / renewal[rate]) then
      added = type(try('INCRBY', KEYS[key], from > 0 and worth_text[rate] or arrival - before)) == 'number'
    end
    if not added then call('SET', KEYS[key], arrival, 'PX', life[rate]) end
    values[key] = arrival
  end
end
reply[3] = foreign
return reply
