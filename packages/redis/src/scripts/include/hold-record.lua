-- A hold as it is stored: its request id's key, state, amount, cost so far, whether it has expired; when it does, and
-- until when it is remembered, in microseconds; then its windows.
--   state   1 held, 2 expired, 3 settled
--   window  counter, mark, kind, how much of the counter stands for the hold, a, b, when it was taken, the arrival or end
--           that the take left behind, the mark's name and how much had been given back by then; capacity, c, life_ms,
--           limit, length in ms, and where its holds are noted. For a, b and c see windows.lua.
local hold_name, index_name = KEYS[1], KEYS[2]
local head_length, window_length = 7, 16

local function read_hold()
  local value = redis.pcall('GET', hold_name)
  local readable, record = pcall(cmsgpack.unpack, type(value) == 'string' and value or '')
  if not readable or type(record) ~= 'table' or #record <= head_length then return nil end
  for i = 2, head_length do
    if type(record[i]) ~= 'number' then return nil end
  end
  for i = head_length + 1, #record do
    if type(record[i]) ~= 'table' or #record[i] ~= window_length then return nil end
  end
  return record
end

local hold = read_hold()
-- The rest of the script is about its counters.
local KEYS = {}
for i = head_length + 1, hold and #hold or 0 do KEYS[i - head_length] = hold[i][1] end
