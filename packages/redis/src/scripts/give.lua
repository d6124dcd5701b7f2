--- Gives a take back by its receipt, once. The receipt holds the keys of its counters, and shares their slot.
---
--- KEYS: the receipt
--- returns: { now_us, 0, given }: 1 if anything could still be given back, else 0
--- include: server-time, arrival-units, give-arrival, give-counts

local held = text_of(KEYS[1])
if not held then return { now_us, 0, 0 } end
call('DEL', KEYS[1])
local readable, record = pcall(cmsgpack.unpack, held)
if not readable or type(record) ~= 'table' then return { now_us, 0, 0 } end
for i = 2, #record do
  if type(record[i]) ~= 'table' or #record[i] ~= 10 then return { now_us, 0, 0 } end
end
local any = 0
for i = 2, #record do
  local name, mark_name, kind, cost, a, b, taken_ms, word, beginning, given_before = unpack(record[i])
  local begun, given_text = read_mark(mark_name)
  if begun == beginning then
    local text, given
    if kind <= 2 then
      text, given = give_arrival(name, a, b, read_ahead(word), given_text - given_before)
    else
      text, given = give_counted(kind, name, cost, a, taken_ms, word)
    end
    if text then
      any = 1
      write_given(name, text, mark_name, begun, given_text, given)
    end
  end
end
-- What was given back is no longer taken: repeating the request is a new one.
if any == 1 and record[1] ~= '' then call('DEL', record[1]) end
return { now_us, 0, any }
