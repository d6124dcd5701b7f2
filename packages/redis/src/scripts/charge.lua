--- Takes costs unconditionally, into bounded debt if it must; gives costs below 0 back, down to nothing.
---
--- KEYS: counters, their distinct values, and marks of those that get something back, each once, all of one slot
--- ARGV[1]: deadline in whole milliseconds since 1970 by this server's clock; 0 for none
--- ARGV[2]: the plan, see windows.lua
--- ARGV[3]: the values that are counted, eight bytes each
--- returns: { now_us, 1 } when late, else { now_us, 0, foreign, healed, answer… }, per request 1, or 4 if a calendar's
---          bounds do not hold at this server's time: then nothing in the call is charged
--- include: server-time, refuse-when-late, arrival-units, windows, distinct, receipt-marks

local plan, position = ARGV[2], 1
local reply = { now_us, 0, 0, 0 }
local bounded = true

while position <= #plan do
  local steps, _
  steps, _, _, _, _, position = unpack_from(head_form, plan, position)
  local answer = 1
  for _ = 1, steps do
    local kind, _, charges, key, _, mark_key, cost, capacity, a, b, c, _, life_ms, next_step =
      unpack_from(window_form, plan, position)
    position = next_step
    if not within_bounds(kind, a, c, life_ms) then
      answer, bounded = 4, false
    elseif charges == 1 then
      local counter = counter_of(kind, key, a, c, life_ms)
      look(kind, counter, cost, capacity, a, b, c)
      if cost > 0 then
        take(kind, counter, cost, capacity, a, b, c)
        touch(key, kind, a, life_ms)
      else
        local given = credit(kind, counter, -cost, a, b)
        if given then
          touch(key, kind, a, life_ms)
          note_credit(mark_key, is_empty(kind, counter), given)
        end
      end
    end
  end
  reply[#reply + 1] = answer
end
reply[3] = count_foreign()
if bounded then
  write_all()
  write_marks()
end
reply[4] = heal()
return reply
