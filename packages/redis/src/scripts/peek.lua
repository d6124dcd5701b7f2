--- Examines requests of any windows as a take would, and changes nothing.
---
--- KEYS: counters, their distinct values, records and blocks, each once, all of one slot
--- ARGV[1]: deadline in whole milliseconds since 1970 by this server's clock; 0 for none
--- ARGV[2]: the plan, see windows.lua
--- ARGV[3]: the values that are counted, eight bytes each
--- returns: as take, with the answer 0, or 4 if a calendar's bounds do not hold at this server's time; nothing is healed
--- include: server-time, refuse-when-late, arrival-units, windows, distinct, blocks

local plan, position = ARGV[2], 1
local reply = { now_us, 0, 0, 0 }
while position <= #plan do
  local steps, _
  steps, _, _, _, _, position = unpack_from(head_form, plan, position)
  local start = #reply
  reply[start + 1], reply[start + 2], reply[start + 3] = 0, now_us, ''
  for _ = 1, steps do
    local kind, _, _, key, block_key, _, cost, capacity, a, b, c, block_for_ms, life_ms, next_step =
      unpack_from(window_form, plan, position)
    position = next_step
    if not within_bounds(kind, a, c, life_ms) then reply[start + 1] = 4 end
    local _, one, two, three, four = look(kind, counter_of(kind, key, a, c, life_ms), cost, capacity, a, b, c)
    local last = #reply
    reply[last + 1], reply[last + 2], reply[last + 3], reply[last + 4] = one, two, three, four
    reply[last + 5] = block_key > 0 and blocked_for(values[block_key], block_for_ms) or 0
  end
end
reply[3] = count_foreign()
return reply
