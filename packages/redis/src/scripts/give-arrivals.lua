--- Gives back what one request has taken from counters of arrival times and holds. Called once at most.
---
--- KEYS: the counter and the mark of each window
--- ARGV[1]: when it was taken, in microseconds since 1970 by this server's clock
--- ARGV[2]: five arguments for each window: what the cost is worth, tolerance, and how far ahead the take left the
---          counter, in units of arrival time; the mark's name at that time, and how much had been given back by then
--- returns: { now_us, 0, given }: 1 if anything could still be given back, else 0
--- include: server-time, arrival-units, give-arrival

local taken_us, given_any = ARGV[1] + 0, 0
local since = (floor(taken_us / 1000) - whole_ms) * 1048576 + floor(taken_us % 1000 * 1048.576) - within_ms

for window = 1, #KEYS / 2 do
  local name, mark_name, first = KEYS[2 * window - 1], KEYS[2 * window], 5 * window - 3
  local begun, given_text = read_mark(mark_name)
  if begun == ARGV[first + 3] then
    local text, given =
      give_arrival(name, ARGV[first] + 0, ARGV[first + 1] + 0, since + ARGV[first + 2], given_text - ARGV[first + 4])
    if text then
      given_any = 1
      write_given(name, text, mark_name, begun, given_text, given)
    end
  end
end
return { now_us, 0, given_any }
