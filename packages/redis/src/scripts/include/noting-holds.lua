-- Where holds are noted besides their records: in the lane's index, by when they expire; and with each counter that is
-- counted in time, because what is given back of one moves those that come after it.
local remember_hold_ms = 600000
-- Of how many holds of a counter it is noted how they lie to each other: giving one back reads all of them.
local most_ordered = 500
local new_holds = {}

local function note_hold_later(index_name, name, expires_us, windows, life_ms)
  new_holds[#new_holds + 1] = { index_name, name, expires_us, windows, life_ms }
end

-- Replaces a value that is not ours, and lives at least so long.
local function note(life_ms, command, name, ...)
  if type(redis.pcall(command, name, ...)) ~= 'number' then
    call('DEL', name)
    call(command, name, ...)
  end
  if call('PTTL', name) < life_ms then call('PEXPIRE', name, ceil(life_ms)) end
end

local function note_expiry(index_name, name, expires_us)
  note((expires_us - now_us) / 1000 + remember_hold_ms + slack_ms, 'ZADD', index_name, format('%.0f', expires_us), name)
end

-- As `ms:units`, the arrival that a hold left behind; how much had been given back to the counter by then, and how much
-- of what was given since lay behind it.
local function place_text(word, before, behind)
  return word .. ' ' .. format('%.0f %.0f', before, behind)
end

local function write_holds()
  for i = 1, #new_holds do
    local index_name, name, expires_us, windows, life_ms = unpack(new_holds[i])
    note_expiry(index_name, name, expires_us)
    for window = 1, #windows do
      local taken = windows[window]
      local noted = taken[16] ~= '' and redis.pcall('HLEN', taken[16])
      if noted and (type(noted) ~= 'number' or noted < most_ordered) then
        note(life_ms, 'HSET', taken[16], name, place_text(taken[8], taken[10], 0))
      end
    end
  end
end
