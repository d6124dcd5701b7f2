// Made from the Lua files in scripts/ by `npm run generate`. Do not edit.

/** A script, and the digest by which servers know it. */
export interface Script {
  readonly digest: string;
  readonly source: string;
}

export type ScriptName =
  | "block"
  | "charge"
  | "giveArrivals"
  | "give"
  | "lease"
  | "peek"
  | "settleHold"
  | "takeArrivals"
  | "takeCounts"
  | "take";

export const scripts: Readonly<Record<ScriptName, Script>> = {
  /** Blocks subjects, each for a given time. A block that lasts longer already stays as it is. */
  block: {
    digest: "5a312c579b5ce67043b313610174e2a655f39aef",
    source: `local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = now_us / 1000
local late_us = ARGV[1] * 1000
if late_us > 0 and now_us > late_us then return { now_us, 1 } end
local longest_block_ms = 31622400000
local latest_moment_us = 9007199254740992
local function read_block(text, block_for_ms)
local until_us, length_ms = string.match(text or '', '^(%d+):(%d+)$')
if not until_us then until_us, length_ms = string.match(text or '', '^%d+$'), block_for_ms end
until_us, length_ms = tonumber(until_us or 0), tonumber(length_ms)
if until_us <= now_us or until_us > latest_moment_us then return 0, 0, false end
if length_ms < 1 or length_ms > longest_block_ms then return 0, 0, false end
local latest_us = now_us + length_ms * 1000
if until_us > latest_us then return latest_us, length_ms, true end
return until_us, length_ms, false
end
local function block_text(until_us, length_ms)
return string.format('%.0f:%.0f', until_us, length_ms)
end
local function blocked_for(text, block_for_ms)
local until_us, length_ms, brought_back = read_block(text, block_for_ms)
return math.ceil(math.max(until_us - now_us, 0) / 1000), brought_back and length_ms
end
local foreign = 0
for key = 1, #KEYS do
local own = 2 * key
local for_ms, block_for_ms = ARGV[own] + 0, ARGV[own + 1] + 0
local value = redis.pcall('GET', KEYS[key])
if type(value) == 'table' then foreign = foreign + 1 end
local running_us, length_ms, brought_back = read_block(type(value) == 'string' and value, block_for_ms)
local until_us = now_us + for_ms * 1000
if until_us > running_us then
redis.call('SET', KEYS[key], block_text(until_us, for_ms), 'PX', for_ms)
elseif brought_back then
redis.call('SET', KEYS[key], block_text(running_us, length_ms), 'PX', length_ms)
end
end
return { now_us, 0, foreign, 0 }
`,
  },
  /** Takes costs unconditionally, into bounded debt if it must; gives costs below 0 back, down to nothing. */
  charge: {
    digest: "b459cfa9141e54bc93600e0bff7db897bc26463e",
    source: `local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = now_us / 1000
local late_us = ARGV[1] * 1000
if late_us > 0 and now_us > late_us then return { now_us, 1 } end
local floor = math.floor
local span = 9007199254740992
local passed = 0.75 * span
local whole_ms = floor(now_us / 1000)
local within_ms = floor(now_us % 1000 * 1048.576)
local at = whole_ms % 8589934592 * 1048576 + within_ms
local room = span - at
local renewal = 62914560000
local function read_wide(value)
local sign, ms, units = string.match(value, '^w(%-?)(%d+):(%d+)$')
if not sign then return nil end
local distance = (ms - whole_ms) * 1048576 + (units - within_ms)
return distance > 0 and distance or 0, sign == '-'
end
local function read_ahead(word)
local ms, units = string.match(word, '^(%d+):(%d+)$')
return ms and (ms - whole_ms) * 1048576 + (units - within_ms) or 0
end
local function instant_text(ahead)
local units = within_ms + ahead
local ms = floor(units / 1048576)
return string.format('%.0f:%.0f', whole_ms + ms, units - ms * 1048576)
end
local function arrival_text(ahead, debt)
local arrival = ahead < room and at + ahead or ahead - room
if not debt then return string.format('%.0f', arrival) end
return string.format('-%.0f', arrival == 0 and span or arrival)
end
local pack, unpack_from, byte, format = struct.pack, struct.unpack, string.byte, string.format
local ceil, call = math.ceil, redis.call
local head_form, window_form = '<HBHHH', '<BHBHHHddddddd'
local window_bytes = 66
local once_ms = 2592000000
local slack_ms = 1000
local exact_entries = 256
local values = #KEYS > 0 and call('MGET', unpack(KEYS)) or {}
local counters, needed_ms, foreign = {}, {}, 0
local distinct = {}
local function read_arrival(value)
local counter = { ahead = 0 }
local number = value and tonumber(value)
if number and number % 1 == 0 then
local distance = ((number < 0 and -number or number) - at) % span
if distance <= passed then
counter.ahead = distance
counter.debt = number < 0
end
if number >= 0 then counter.stored = number end
elseif value then
local ahead, debt = read_wide(value)
if ahead then
counter.ahead, counter.debt = ahead, debt
else
foreign = foreign + 1
end
end
return counter
end
local function is_whole(number)
return number >= 0 and number <= span and number % 1 == 0
end
local function read_packed(value, tag, form, length)
if not value then return 0, 0, 0 end
if #value == length and byte(value) == tag then
local _, one, two, three = unpack_from(form, value)
if is_whole(one) and is_whole(two) and (length == 17 or is_whole(three)) then return one, two, three end
end
foreign = foreign + 1
return 0, 0, 0
end
local function read_log(value)
local counter = { entries = {}, first = 1, used = 0 }
if not value then return counter end
if byte(value) ~= 76 or #value % 16 ~= 1 then
foreign = foreign + 1
return counter
end
local entries = counter.entries
local before = 0
for position = 2, #value, 16 do
local time, cost = unpack_from('<dd', value, position)
counter.used = counter.used + cost
if not (time >= before and time <= span and is_whole(cost) and counter.used <= span) then
foreign = foreign + 1
return { entries = {}, first = 1, used = 0 }
end
before = time
if time > now_ms then time, counter.misfit = now_ms, true end
entries[#entries + 1] = time
entries[#entries + 1] = cost
end
return counter
end
local function read_record(value)
local updated, denied = string.match(value or '', '^(%d+) (%d+)$')
updated, denied = tonumber(updated), tonumber(denied)
if updated and updated <= span and denied <= span then return { updated = updated, denied = denied } end
if value then foreign = foreign + 1 end
return { updated = 0, denied = 0 }
end
local function settle(counter, per_ms)
local entries, first = counter.entries, counter.first
while first < #entries and now_ms - entries[first] >= per_ms do
counter.used = counter.used - entries[first + 1]
first = first + 2
end
counter.first = first
end
local function add_entry(counter, cost, per_ms)
local entries = counter.entries
counter.used = counter.used + cost
if #entries > counter.first and entries[#entries - 1] == now_ms then
entries[#entries] = entries[#entries] + cost
return
end
entries[#entries + 1] = now_ms
entries[#entries + 1] = cost
if (#entries - counter.first + 1) / 2 <= exact_entries then return end
local slot_ms, merged, slot = per_ms / exact_entries, {}, nil
for i = counter.first, #entries, 2 do
local slot_of_entry = floor(entries[i] / slot_ms)
if slot_of_entry == slot then
merged[#merged - 1] = entries[i]
merged[#merged] = merged[#merged] + entries[i + 1]
else
merged[#merged + 1] = entries[i]
merged[#merged + 1] = entries[i + 1]
slot = slot_of_entry
end
end
counter.entries, counter.first = merged, 1
end
local function aligned_end(per_ms)
return (floor(floor(now_ms) / per_ms) + 1) * per_ms
end
local function counter_of(kind, key, a, c, life_ms)
local counter = counters[key]
if not counter then
local value = values[key]
if kind <= 2 then
counter = read_arrival(value)
elseif kind == 3 or kind == 7 then
local ends, count = read_packed(value, 67, '<Bdd', 17)
counter = { ends = ends, count = count }
elseif kind == 4 then
local idle, current, previous = read_packed(value, 83, '<Bddd', 25)
counter = { idle = idle, current = current, previous = previous }
elseif kind == 5 then
counter = read_log(value)
else
counter = read_record(value)
end
counters[key] = counter
needed_ms[key] = kind == 3 and a < 0 and 2 * once_ms or life_ms
end
if kind == 3 or kind == 7 then
local latest = a > 0 and aligned_end(a) or a == 0 and ceil(now_ms) + once_ms or c
if counter.ends > latest then counter.ends, counter.misfit = latest, true end
if counter.ends <= now_ms then counter.count = 0 end
elseif kind == 4 then
local latest = aligned_end(a) + a
if counter.idle > latest then counter.idle, counter.misfit = latest, true end
if now_ms >= counter.idle then
counter.idle, counter.current, counter.previous = aligned_end(a) + a, 0, 0
elseif now_ms >= counter.idle - a then
counter.idle, counter.current, counter.previous = counter.idle + a, 0, counter.current
end
elseif kind == 5 then
settle(counter, a)
end
return counter
end
local function clamp(counter, full, furthest)
if counter.ahead > furthest and not (counter.debt and counter.ahead <= 2 * furthest) then
counter.ahead, counter.debt, counter.stored, counter.misfit = full, nil, nil, true
end
end
local function next_freed(counter, capacity, per_ms)
local entries, first, freed = counter.entries, counter.first, counter.first
if freed > #entries then return 0 end
local used = counter.used - entries[freed + 1]
while used >= capacity and freed + 2 < #entries do
freed = freed + 2
used = used - entries[freed + 1]
end
local dated_ms = entries[freed]
if (#entries - first + 1) / 2 >= exact_entries and entries[#entries - 1] ~= now_ms then
local slot_ms = per_ms / exact_entries
local slot = floor(dated_ms / slot_ms)
while freed + 2 < #entries and floor(entries[freed + 2] / slot_ms) == slot do freed = freed + 2 end
dated_ms = freed + 1 == #entries and floor(now_ms / slot_ms) == slot and now_ms or entries[freed]
end
return ceil(per_ms - (now_ms - dated_ms))
end
local function look(kind, counter, cost, capacity, a, b, c)
if kind <= 2 then
clamp(counter, capacity, c)
return counter.ahead + a <= b, counter.ahead, 0, 0, 0
elseif kind == 3 then
return counter.count + cost <= capacity, counter.ends, counter.count, 0, 0
elseif kind == 4 then
local until_end = counter.idle - a - now_ms
local fits = cost <= capacity and counter.previous * until_end + (counter.current + cost - capacity) * a <= 0
return fits, counter.idle, counter.current, counter.previous, 0
elseif kind == 6 then
return true, counter.updated, counter.denied, 0, 0
elseif kind == 7 then
return distinct.look(counter, capacity, b, c)
end
local entries, used, wait_ms = counter.entries, counter.used, 0
if used + cost <= capacity or cost > capacity then
wait_ms = next_freed(counter, capacity, a)
else
for i = counter.first, #entries, 2 do
if used + cost <= capacity then break end
used = used - entries[i + 1]
wait_ms = ceil(a - (now_ms - entries[i]))
end
end
local reset_ms = #entries > counter.first and ceil(a - (now_ms - entries[#entries - 1])) or 0
return counter.used + cost <= capacity, counter.used, wait_ms, reset_ms, (#entries - counter.first + 1) / 2
end
local function end_of_count(counter, a, b, c)
if a == 0 then return ceil(now_ms) + once_ms end
if counter.count > 0 then return counter.ends end
if a > 0 then return aligned_end(a) end
return now_ms < b and b or c
end
local function within_bounds(kind, a, c, began_ms)
return kind ~= 3 or a >= 0 or (now_ms >= began_ms and now_ms < c)
end
local function take(kind, counter, cost, capacity, a, b, c)
if kind <= 2 then
local after = counter.ahead + a
if after <= b then
counter.ahead, counter.debt = after, nil
else
local bounded = math.min(after, b + capacity)
counter.ahead, counter.debt, counter.stored = math.max(counter.ahead, bounded), true, nil
end
elseif kind == 3 then
counter.ends = end_of_count(counter, a, b, c)
counter.count = math.max(counter.count, math.min(counter.count + cost, 2 * capacity))
elseif kind == 4 then
counter.current = math.max(counter.current, math.min(counter.current + cost, 2 * capacity))
elseif kind == 7 then
distinct.take(counter, a, b, c)
else
local bounded = math.min(cost, 2 * capacity - counter.used)
if bounded > 0 then add_entry(counter, bounded, a) end
end
end
local function credit(kind, counter, cost, a, b)
if kind <= 2 then
if counter.ahead == 0 then return nil end
local given = math.min(a, counter.ahead)
counter.ahead = counter.ahead - given
if counter.ahead <= b then counter.debt = nil end
return given
elseif kind == 3 then
if counter.count == 0 then return nil end
counter.count = math.max(counter.count - cost, 0)
elseif kind == 7 then
return nil
elseif kind == 4 then
if counter.current + counter.previous == 0 then return nil end
local rest = cost - math.min(cost, counter.current)
if rest == 0 then
counter.current = counter.current - cost
return 0
end
local until_end = counter.idle - a - now_ms
local units = floor(rest * a / until_end)
if units * until_end > rest * a then units = units - 1 end
counter.current, counter.previous = 0, math.max(counter.previous - units, 0)
else
local entries = counter.entries
if #entries < counter.first then return nil end
while cost > 0 and #entries > counter.first do
local removed = math.min(entries[#entries], cost)
cost, counter.used = cost - removed, counter.used - removed
entries[#entries] = entries[#entries] - removed
if entries[#entries] == 0 then entries[#entries], entries[#entries - 1] = nil, nil end
end
end
return 0
end
local function is_empty(kind, counter)
if kind <= 2 then return counter.ahead == 0 end
if kind == 3 then return counter.count == 0 end
if kind == 4 then return counter.current + counter.previous == 0 end
return counter.used == 0
end
local function life_until(instant_ms)
return ceil(instant_ms - now_ms) + slack_ms
end
local function log_text(counter)
local parts, entries = { 'L' }, counter.entries
for i = counter.first, #entries, 2 do parts[#parts + 1] = pack('<dd', entries[i], entries[i + 1]) end
return table.concat(parts)
end
local function write_arrival(name, counter, life_ms)
local arrival = counter.ahead < room and at + counter.ahead or counter.ahead - room
local before = counter.stored
if counter.debt then
call('SET', name, arrival_text(counter.ahead, true), 'PX', life_ms)
elseif not before or floor(before / renewal) ~= floor(arrival / renewal)
or type(redis.pcall('INCRBY', name, arrival - before)) ~= 'number' then
call('SET', name, arrival, 'PX', life_ms)
end
end
local function write(kind, name, counter, a, life_ms)
if kind == 1 then
write_arrival(name, counter, life_ms)
elseif kind == 2 then
call('SET', name, (counter.debt and 'w-' or 'w') .. instant_text(counter.ahead), 'PX', life_ms)
elseif kind == 3 or kind == 7 then
call('SET', name, pack('<Bdd', 67, counter.ends, counter.count), 'PX', life_until(counter.ends))
elseif kind == 4 then
call('SET', name, pack('<Bddd', 83, counter.idle, counter.current, counter.previous), 'PX', life_until(counter.idle))
elseif kind == 6 then
call('SET', name, format('%.0f %.0f', counter.updated, counter.denied), 'PX', ceil(life_ms))
else
call('SET', name, log_text(counter), 'PX', life_until(now_ms + a))
end
end
local dirty, kind_of, a_of, life_of = {}, {}, {}, {}
local function touch(key, kind, a, life_ms)
if not kind_of[key] then dirty[#dirty + 1] = key end
kind_of[key], a_of[key], life_of[key] = kind, a, life_ms
end
local function write_all()
for i = 1, #dirty do
local key = dirty[i]
write(kind_of[key], KEYS[key], counters[key], a_of[key], life_of[key])
end
end
local function heal()
if #KEYS == 0 then return 0 end
local looked_at = now_us % #KEYS + 1
if not values[looked_at] or call('PTTL', KEYS[looked_at]) ~= -1 then return 0 end
call('PEXPIRE', KEYS[looked_at], needed_ms[looked_at] or once_ms)
return 1
end
local function count_foreign()
local absent = {}
for key = 1, #KEYS do
if not values[key] then absent[#absent + 1] = KEYS[key] end
end
if #absent == 0 then return foreign end
return foreign + call('EXISTS', unpack(absent))
end
local exact_values, sketch_bytes = 1536, 12304
local empty_sketch_head = 'HYLL\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\128'
local raised = {}
local function has_value(text, value)
local from = 2
while true do
local found = string.find(text, value, from, true)
if not found then return false end
if found % 8 == 2 then return true end
from = found + 1
end
end
local function is_sketch(text)
return #text == sketch_bytes and string.sub(text, 1, 5) == 'HYLL\\0'
end
local function is_new(counter, place, c)
if counter.count == 0 then return true end
local key = floor(c / 65536)
local text = values[key]
if text and byte(text) == 86 and #text % 8 == 1 then return not has_value(text, ARGV[c % 65536]) end
if text and is_sketch(text) then
local register, rank = floor(place / 64), place % 64
local bits = register * 6
local first, second = byte(text, 17 + floor(bits / 8), 18 + floor(bits / 8))
local held = floor((first + 256 * (second or 0)) / 2 ^ (bits % 8)) % 64
return held < rank and (raised[key * 16384 + register] or 0) < rank
end
if text then foreign = foreign + 1 end
counter.count = 0
return true
end
local function blur(name, text, life_ms)
call('SET', name, empty_sketch_head .. string.rep('\\0', sketch_bytes - 16), 'PX', life_ms)
for from = 2, #text, 800 do
local some = {}
for position = from, math.min(from + 792, #text), 8 do some[#some + 1] = string.sub(text, position, position + 7) end
call('PFADD', name, unpack(some))
end
end
local function add_value(counter, place, c)
local key, value = floor(c / 65536), ARGV[c % 65536]
local name, life_ms = KEYS[key], life_until(counter.ends)
if counter.count == 0 then
values[key] = 'V' .. value
call('SET', name, values[key], 'PX', life_ms)
counter.count = 1
elseif byte(values[key]) == 86 and #values[key] < 8 * exact_values then
values[key] = values[key] .. value
call('APPEND', name, value)
counter.count = counter.count + 1
else
local is_exact = byte(values[key]) == 86
if is_exact then blur(name, values[key], life_ms) end
call('PFADD', name, value)
if is_exact then values[key] = call('GET', name) end
raised[key * 16384 + floor(place / 64)] = place % 64
counter.count = math.max(counter.count, floor(call('PFCOUNT', name) / 1.025))
end
end
function distinct.look(counter, capacity, place, c)
local new = is_new(counter, place, c)
return not new or counter.count < capacity, counter.ends, counter.count, new and 1 or 0, 0
end
function distinct.take(counter, per_ms, place, c)
if not is_new(counter, place, c) then return end
if counter.count == 0 then counter.ends = aligned_end(per_ms) end
add_value(counter, place, c)
end
local marks = {}
local function note_credit(mark_key, emptied, given)
local mark = marks[mark_key]
if mark == nil then mark = values[mark_key] end
local beginning, given_text = string.match(mark or '', '^([%w_-]+) (%d+)$')
if not beginning then return end
marks[mark_key] = not emptied and beginning .. ' ' .. format('%.0f', given_text + given)
end
local function write_marks()
for mark_key, mark in pairs(marks) do
if mark then
call('SET', KEYS[mark_key], mark, 'KEEPTTL')
else
call('DEL', KEYS[mark_key])
end
end
end
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
`,
  },
  /** Gives back what one request has taken from counters of arrival times and holds. Called once at most. */
  giveArrivals: {
    digest: "af28c450d149e3041d5d7a8fd0b0f1ffc0fde890",
    source: `local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = now_us / 1000
local floor = math.floor
local span = 9007199254740992
local passed = 0.75 * span
local whole_ms = floor(now_us / 1000)
local within_ms = floor(now_us % 1000 * 1048.576)
local at = whole_ms % 8589934592 * 1048576 + within_ms
local room = span - at
local renewal = 62914560000
local function read_wide(value)
local sign, ms, units = string.match(value, '^w(%-?)(%d+):(%d+)$')
if not sign then return nil end
local distance = (ms - whole_ms) * 1048576 + (units - within_ms)
return distance > 0 and distance or 0, sign == '-'
end
local function read_ahead(word)
local ms, units = string.match(word, '^(%d+):(%d+)$')
return ms and (ms - whole_ms) * 1048576 + (units - within_ms) or 0
end
local function instant_text(ahead)
local units = within_ms + ahead
local ms = floor(units / 1048576)
return string.format('%.0f:%.0f', whole_ms + ms, units - ms * 1048576)
end
local function arrival_text(ahead, debt)
local arrival = ahead < room and at + ahead or ahead - room
if not debt then return string.format('%.0f', arrival) end
return string.format('-%.0f', arrival == 0 and span or arrival)
end
local call, format = redis.call, string.format
local function text_of(name)
local value = redis.pcall('GET', name)
return type(value) == 'string' and value or nil
end
local function read_mark(name)
return string.match(text_of(name) or '', '^([%w_-]+) (%d+)$')
end
local function give_arrival(name, cost_worth, tolerance, taken, given_since)
local value = text_of(name)
if not value then return nil end
local number, ends, debt = tonumber(value), nil, nil
local wide = not (number and number % 1 == 0)
if wide then
ends, debt = read_wide(value)
else
ends, debt = (math.abs(number) - at) % span, number < 0
end
if not ends or ends > passed and not wide then return nil end
local still = taken - given_since
if taken <= 0 or still <= 0 or ends < still then return nil end
local given = math.min(cost_worth, still)
local left = ends - given
debt = debt and left > tolerance
return wide and (debt and 'w-' or 'w') .. instant_text(left) or arrival_text(left, debt), given
end
local function write_given(name, text, mark_name, begun, given_text, given)
call('SET', name, text, 'KEEPTTL')
if given > 0 then call('SET', mark_name, begun .. ' ' .. format('%.0f', given_text + given), 'KEEPTTL') end
end
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
`,
  },
  /** Gives a take back by its receipt, once. The receipt holds the keys of its counters, and shares their slot. */
  give: {
    digest: "add64c3d7774d8ea4cd5435b48863be07005ec70",
    source: `local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = now_us / 1000
local floor = math.floor
local span = 9007199254740992
local passed = 0.75 * span
local whole_ms = floor(now_us / 1000)
local within_ms = floor(now_us % 1000 * 1048.576)
local at = whole_ms % 8589934592 * 1048576 + within_ms
local room = span - at
local renewal = 62914560000
local function read_wide(value)
local sign, ms, units = string.match(value, '^w(%-?)(%d+):(%d+)$')
if not sign then return nil end
local distance = (ms - whole_ms) * 1048576 + (units - within_ms)
return distance > 0 and distance or 0, sign == '-'
end
local function read_ahead(word)
local ms, units = string.match(word, '^(%d+):(%d+)$')
return ms and (ms - whole_ms) * 1048576 + (units - within_ms) or 0
end
local function instant_text(ahead)
local units = within_ms + ahead
local ms = floor(units / 1048576)
return string.format('%.0f:%.0f', whole_ms + ms, units - ms * 1048576)
end
local function arrival_text(ahead, debt)
local arrival = ahead < room and at + ahead or ahead - room
if not debt then return string.format('%.0f', arrival) end
return string.format('-%.0f', arrival == 0 and span or arrival)
end
local call, format = redis.call, string.format
local function text_of(name)
local value = redis.pcall('GET', name)
return type(value) == 'string' and value or nil
end
local function read_mark(name)
return string.match(text_of(name) or '', '^([%w_-]+) (%d+)$')
end
local function give_arrival(name, cost_worth, tolerance, taken, given_since)
local value = text_of(name)
if not value then return nil end
local number, ends, debt = tonumber(value), nil, nil
local wide = not (number and number % 1 == 0)
if wide then
ends, debt = read_wide(value)
else
ends, debt = (math.abs(number) - at) % span, number < 0
end
if not ends or ends > passed and not wide then return nil end
local still = taken - given_since
if taken <= 0 or still <= 0 or ends < still then return nil end
local given = math.min(cost_worth, still)
local left = ends - given
debt = debt and left > tolerance
return wide and (debt and 'w-' or 'w') .. instant_text(left) or arrival_text(left, debt), given
end
local function write_given(name, text, mark_name, begun, given_text, given)
call('SET', name, text, 'KEEPTTL')
if given > 0 then call('SET', mark_name, begun .. ' ' .. format('%.0f', given_text + given), 'KEEPTTL') end
end
local pack, unpack_from, byte = struct.pack, struct.unpack, string.byte
local function give_count(name, cost, ends)
local value = text_of(name)
if not value or #value ~= 17 or byte(value) ~= 67 then return nil end
local _, stored_ends, count = unpack_from('<Bdd', value)
if now_ms >= ends or stored_ends <= now_ms or count < cost then return nil end
return pack('<Bdd', 67, stored_ends, count - cost), 0
end
local function give_sliding(name, cost, idle, per_ms)
local value = text_of(name)
if not value or #value ~= 25 or byte(value) ~= 83 or now_ms >= idle then return nil end
local _, stored_idle, current, previous = unpack_from('<Bddd', value)
if stored_idle == idle and current >= cost then
return pack('<Bddd', 83, stored_idle, current - cost, previous), 0
elseif stored_idle == idle + per_ms and previous >= cost then
return pack('<Bddd', 83, stored_idle, current, previous - cost), 0
end
return nil
end
local function give_log(name, cost, taken_ms, per_ms)
local value = text_of(name)
if not value or byte(value) ~= 76 or #value % 16 ~= 1 or now_ms >= taken_ms + per_ms then return nil end
for position = 2, #value, 16 do
local time, held = unpack_from('<dd', value, position)
if time >= taken_ms then
if held < cost then return nil end
local entry = held > cost and pack('<dd', time, held - cost) or ''
return string.sub(value, 1, position - 1) .. entry .. string.sub(value, position + 16), 0
end
end
return nil
end
local function give_counted(kind, name, cost, a, taken_ms, word)
if kind == 3 then return give_count(name, cost, word) end
if kind == 4 then return give_sliding(name, cost, word, a) end
return give_log(name, cost, taken_ms, a)
end
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
if any == 1 and record[1] ~= '' then call('DEL', record[1]) end
return { now_us, 0, any }
`,
  },
  /** Grants leases: takes up to what is wanted, to be spent on another node, and settles earlier ones. */
  lease: {
    digest: "c4696c8af9d09ac6ff2983a7d46cf3711199e493",
    source: `local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = now_us / 1000
local late_us = ARGV[1] * 1000
if late_us > 0 and now_us > late_us then return { now_us, 1 } end
local floor = math.floor
local span = 9007199254740992
local passed = 0.75 * span
local whole_ms = floor(now_us / 1000)
local within_ms = floor(now_us % 1000 * 1048.576)
local at = whole_ms % 8589934592 * 1048576 + within_ms
local room = span - at
local renewal = 62914560000
local function read_wide(value)
local sign, ms, units = string.match(value, '^w(%-?)(%d+):(%d+)$')
if not sign then return nil end
local distance = (ms - whole_ms) * 1048576 + (units - within_ms)
return distance > 0 and distance or 0, sign == '-'
end
local function read_ahead(word)
local ms, units = string.match(word, '^(%d+):(%d+)$')
return ms and (ms - whole_ms) * 1048576 + (units - within_ms) or 0
end
local function instant_text(ahead)
local units = within_ms + ahead
local ms = floor(units / 1048576)
return string.format('%.0f:%.0f', whole_ms + ms, units - ms * 1048576)
end
local function arrival_text(ahead, debt)
local arrival = ahead < room and at + ahead or ahead - room
if not debt then return string.format('%.0f', arrival) end
return string.format('-%.0f', arrival == 0 and span or arrival)
end
local pack, unpack_from, byte, format = struct.pack, struct.unpack, string.byte, string.format
local ceil, call = math.ceil, redis.call
local head_form, window_form = '<HBHHH', '<BHBHHHddddddd'
local window_bytes = 66
local once_ms = 2592000000
local slack_ms = 1000
local exact_entries = 256
local values = #KEYS > 0 and call('MGET', unpack(KEYS)) or {}
local counters, needed_ms, foreign = {}, {}, 0
local distinct = {}
local function read_arrival(value)
local counter = { ahead = 0 }
local number = value and tonumber(value)
if number and number % 1 == 0 then
local distance = ((number < 0 and -number or number) - at) % span
if distance <= passed then
counter.ahead = distance
counter.debt = number < 0
end
if number >= 0 then counter.stored = number end
elseif value then
local ahead, debt = read_wide(value)
if ahead then
counter.ahead, counter.debt = ahead, debt
else
foreign = foreign + 1
end
end
return counter
end
local function is_whole(number)
return number >= 0 and number <= span and number % 1 == 0
end
local function read_packed(value, tag, form, length)
if not value then return 0, 0, 0 end
if #value == length and byte(value) == tag then
local _, one, two, three = unpack_from(form, value)
if is_whole(one) and is_whole(two) and (length == 17 or is_whole(three)) then return one, two, three end
end
foreign = foreign + 1
return 0, 0, 0
end
local function read_log(value)
local counter = { entries = {}, first = 1, used = 0 }
if not value then return counter end
if byte(value) ~= 76 or #value % 16 ~= 1 then
foreign = foreign + 1
return counter
end
local entries = counter.entries
local before = 0
for position = 2, #value, 16 do
local time, cost = unpack_from('<dd', value, position)
counter.used = counter.used + cost
if not (time >= before and time <= span and is_whole(cost) and counter.used <= span) then
foreign = foreign + 1
return { entries = {}, first = 1, used = 0 }
end
before = time
if time > now_ms then time, counter.misfit = now_ms, true end
entries[#entries + 1] = time
entries[#entries + 1] = cost
end
return counter
end
local function read_record(value)
local updated, denied = string.match(value or '', '^(%d+) (%d+)$')
updated, denied = tonumber(updated), tonumber(denied)
if updated and updated <= span and denied <= span then return { updated = updated, denied = denied } end
if value then foreign = foreign + 1 end
return { updated = 0, denied = 0 }
end
local function settle(counter, per_ms)
local entries, first = counter.entries, counter.first
while first < #entries and now_ms - entries[first] >= per_ms do
counter.used = counter.used - entries[first + 1]
first = first + 2
end
counter.first = first
end
local function add_entry(counter, cost, per_ms)
local entries = counter.entries
counter.used = counter.used + cost
if #entries > counter.first and entries[#entries - 1] == now_ms then
entries[#entries] = entries[#entries] + cost
return
end
entries[#entries + 1] = now_ms
entries[#entries + 1] = cost
if (#entries - counter.first + 1) / 2 <= exact_entries then return end
local slot_ms, merged, slot = per_ms / exact_entries, {}, nil
for i = counter.first, #entries, 2 do
local slot_of_entry = floor(entries[i] / slot_ms)
if slot_of_entry == slot then
merged[#merged - 1] = entries[i]
merged[#merged] = merged[#merged] + entries[i + 1]
else
merged[#merged + 1] = entries[i]
merged[#merged + 1] = entries[i + 1]
slot = slot_of_entry
end
end
counter.entries, counter.first = merged, 1
end
local function aligned_end(per_ms)
return (floor(floor(now_ms) / per_ms) + 1) * per_ms
end
local function counter_of(kind, key, a, c, life_ms)
local counter = counters[key]
if not counter then
local value = values[key]
if kind <= 2 then
counter = read_arrival(value)
elseif kind == 3 or kind == 7 then
local ends, count = read_packed(value, 67, '<Bdd', 17)
counter = { ends = ends, count = count }
elseif kind == 4 then
local idle, current, previous = read_packed(value, 83, '<Bddd', 25)
counter = { idle = idle, current = current, previous = previous }
elseif kind == 5 then
counter = read_log(value)
else
counter = read_record(value)
end
counters[key] = counter
needed_ms[key] = kind == 3 and a < 0 and 2 * once_ms or life_ms
end
if kind == 3 or kind == 7 then
local latest = a > 0 and aligned_end(a) or a == 0 and ceil(now_ms) + once_ms or c
if counter.ends > latest then counter.ends, counter.misfit = latest, true end
if counter.ends <= now_ms then counter.count = 0 end
elseif kind == 4 then
local latest = aligned_end(a) + a
if counter.idle > latest then counter.idle, counter.misfit = latest, true end
if now_ms >= counter.idle then
counter.idle, counter.current, counter.previous = aligned_end(a) + a, 0, 0
elseif now_ms >= counter.idle - a then
counter.idle, counter.current, counter.previous = counter.idle + a, 0, counter.current
end
elseif kind == 5 then
settle(counter, a)
end
return counter
end
local function clamp(counter, full, furthest)
if counter.ahead > furthest and not (counter.debt and counter.ahead <= 2 * furthest) then
counter.ahead, counter.debt, counter.stored, counter.misfit = full, nil, nil, true
end
end
local function next_freed(counter, capacity, per_ms)
local entries, first, freed = counter.entries, counter.first, counter.first
if freed > #entries then return 0 end
local used = counter.used - entries[freed + 1]
while used >= capacity and freed + 2 < #entries do
freed = freed + 2
used = used - entries[freed + 1]
end
local dated_ms = entries[freed]
if (#entries - first + 1) / 2 >= exact_entries and entries[#entries - 1] ~= now_ms then
local slot_ms = per_ms / exact_entries
local slot = floor(dated_ms / slot_ms)
while freed + 2 < #entries and floor(entries[freed + 2] / slot_ms) == slot do freed = freed + 2 end
dated_ms = freed + 1 == #entries and floor(now_ms / slot_ms) == slot and now_ms or entries[freed]
end
return ceil(per_ms - (now_ms - dated_ms))
end
local function look(kind, counter, cost, capacity, a, b, c)
if kind <= 2 then
clamp(counter, capacity, c)
return counter.ahead + a <= b, counter.ahead, 0, 0, 0
elseif kind == 3 then
return counter.count + cost <= capacity, counter.ends, counter.count, 0, 0
elseif kind == 4 then
local until_end = counter.idle - a - now_ms
local fits = cost <= capacity and counter.previous * until_end + (counter.current + cost - capacity) * a <= 0
return fits, counter.idle, counter.current, counter.previous, 0
elseif kind == 6 then
return true, counter.updated, counter.denied, 0, 0
elseif kind == 7 then
return distinct.look(counter, capacity, b, c)
end
local entries, used, wait_ms = counter.entries, counter.used, 0
if used + cost <= capacity or cost > capacity then
wait_ms = next_freed(counter, capacity, a)
else
for i = counter.first, #entries, 2 do
if used + cost <= capacity then break end
used = used - entries[i + 1]
wait_ms = ceil(a - (now_ms - entries[i]))
end
end
local reset_ms = #entries > counter.first and ceil(a - (now_ms - entries[#entries - 1])) or 0
return counter.used + cost <= capacity, counter.used, wait_ms, reset_ms, (#entries - counter.first + 1) / 2
end
local function end_of_count(counter, a, b, c)
if a == 0 then return ceil(now_ms) + once_ms end
if counter.count > 0 then return counter.ends end
if a > 0 then return aligned_end(a) end
return now_ms < b and b or c
end
local function within_bounds(kind, a, c, began_ms)
return kind ~= 3 or a >= 0 or (now_ms >= began_ms and now_ms < c)
end
local function take(kind, counter, cost, capacity, a, b, c)
if kind <= 2 then
local after = counter.ahead + a
if after <= b then
counter.ahead, counter.debt = after, nil
else
local bounded = math.min(after, b + capacity)
counter.ahead, counter.debt, counter.stored = math.max(counter.ahead, bounded), true, nil
end
elseif kind == 3 then
counter.ends = end_of_count(counter, a, b, c)
counter.count = math.max(counter.count, math.min(counter.count + cost, 2 * capacity))
elseif kind == 4 then
counter.current = math.max(counter.current, math.min(counter.current + cost, 2 * capacity))
elseif kind == 7 then
distinct.take(counter, a, b, c)
else
local bounded = math.min(cost, 2 * capacity - counter.used)
if bounded > 0 then add_entry(counter, bounded, a) end
end
end
local function credit(kind, counter, cost, a, b)
if kind <= 2 then
if counter.ahead == 0 then return nil end
local given = math.min(a, counter.ahead)
counter.ahead = counter.ahead - given
if counter.ahead <= b then counter.debt = nil end
return given
elseif kind == 3 then
if counter.count == 0 then return nil end
counter.count = math.max(counter.count - cost, 0)
elseif kind == 7 then
return nil
elseif kind == 4 then
if counter.current + counter.previous == 0 then return nil end
local rest = cost - math.min(cost, counter.current)
if rest == 0 then
counter.current = counter.current - cost
return 0
end
local until_end = counter.idle - a - now_ms
local units = floor(rest * a / until_end)
if units * until_end > rest * a then units = units - 1 end
counter.current, counter.previous = 0, math.max(counter.previous - units, 0)
else
local entries = counter.entries
if #entries < counter.first then return nil end
while cost > 0 and #entries > counter.first do
local removed = math.min(entries[#entries], cost)
cost, counter.used = cost - removed, counter.used - removed
entries[#entries] = entries[#entries] - removed
if entries[#entries] == 0 then entries[#entries], entries[#entries - 1] = nil, nil end
end
end
return 0
end
local function is_empty(kind, counter)
if kind <= 2 then return counter.ahead == 0 end
if kind == 3 then return counter.count == 0 end
if kind == 4 then return counter.current + counter.previous == 0 end
return counter.used == 0
end
local function life_until(instant_ms)
return ceil(instant_ms - now_ms) + slack_ms
end
local function log_text(counter)
local parts, entries = { 'L' }, counter.entries
for i = counter.first, #entries, 2 do parts[#parts + 1] = pack('<dd', entries[i], entries[i + 1]) end
return table.concat(parts)
end
local function write_arrival(name, counter, life_ms)
local arrival = counter.ahead < room and at + counter.ahead or counter.ahead - room
local before = counter.stored
if counter.debt then
call('SET', name, arrival_text(counter.ahead, true), 'PX', life_ms)
elseif not before or floor(before / renewal) ~= floor(arrival / renewal)
or type(redis.pcall('INCRBY', name, arrival - before)) ~= 'number' then
call('SET', name, arrival, 'PX', life_ms)
end
end
local function write(kind, name, counter, a, life_ms)
if kind == 1 then
write_arrival(name, counter, life_ms)
elseif kind == 2 then
call('SET', name, (counter.debt and 'w-' or 'w') .. instant_text(counter.ahead), 'PX', life_ms)
elseif kind == 3 or kind == 7 then
call('SET', name, pack('<Bdd', 67, counter.ends, counter.count), 'PX', life_until(counter.ends))
elseif kind == 4 then
call('SET', name, pack('<Bddd', 83, counter.idle, counter.current, counter.previous), 'PX', life_until(counter.idle))
elseif kind == 6 then
call('SET', name, format('%.0f %.0f', counter.updated, counter.denied), 'PX', ceil(life_ms))
else
call('SET', name, log_text(counter), 'PX', life_until(now_ms + a))
end
end
local dirty, kind_of, a_of, life_of = {}, {}, {}, {}
local function touch(key, kind, a, life_ms)
if not kind_of[key] then dirty[#dirty + 1] = key end
kind_of[key], a_of[key], life_of[key] = kind, a, life_ms
end
local function write_all()
for i = 1, #dirty do
local key = dirty[i]
write(kind_of[key], KEYS[key], counters[key], a_of[key], life_of[key])
end
end
local function heal()
if #KEYS == 0 then return 0 end
local looked_at = now_us % #KEYS + 1
if not values[looked_at] or call('PTTL', KEYS[looked_at]) ~= -1 then return 0 end
call('PEXPIRE', KEYS[looked_at], needed_ms[looked_at] or once_ms)
return 1
end
local function count_foreign()
local absent = {}
for key = 1, #KEYS do
if not values[key] then absent[#absent + 1] = KEYS[key] end
end
if #absent == 0 then return foreign end
return foreign + call('EXISTS', unpack(absent))
end
local exact_values, sketch_bytes = 1536, 12304
local empty_sketch_head = 'HYLL\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\128'
local raised = {}
local function has_value(text, value)
local from = 2
while true do
local found = string.find(text, value, from, true)
if not found then return false end
if found % 8 == 2 then return true end
from = found + 1
end
end
local function is_sketch(text)
return #text == sketch_bytes and string.sub(text, 1, 5) == 'HYLL\\0'
end
local function is_new(counter, place, c)
if counter.count == 0 then return true end
local key = floor(c / 65536)
local text = values[key]
if text and byte(text) == 86 and #text % 8 == 1 then return not has_value(text, ARGV[c % 65536]) end
if text and is_sketch(text) then
local register, rank = floor(place / 64), place % 64
local bits = register * 6
local first, second = byte(text, 17 + floor(bits / 8), 18 + floor(bits / 8))
local held = floor((first + 256 * (second or 0)) / 2 ^ (bits % 8)) % 64
return held < rank and (raised[key * 16384 + register] or 0) < rank
end
if text then foreign = foreign + 1 end
counter.count = 0
return true
end
local function blur(name, text, life_ms)
call('SET', name, empty_sketch_head .. string.rep('\\0', sketch_bytes - 16), 'PX', life_ms)
for from = 2, #text, 800 do
local some = {}
for position = from, math.min(from + 792, #text), 8 do some[#some + 1] = string.sub(text, position, position + 7) end
call('PFADD', name, unpack(some))
end
end
local function add_value(counter, place, c)
local key, value = floor(c / 65536), ARGV[c % 65536]
local name, life_ms = KEYS[key], life_until(counter.ends)
if counter.count == 0 then
values[key] = 'V' .. value
call('SET', name, values[key], 'PX', life_ms)
counter.count = 1
elseif byte(values[key]) == 86 and #values[key] < 8 * exact_values then
values[key] = values[key] .. value
call('APPEND', name, value)
counter.count = counter.count + 1
else
local is_exact = byte(values[key]) == 86
if is_exact then blur(name, values[key], life_ms) end
call('PFADD', name, value)
if is_exact then values[key] = call('GET', name) end
raised[key * 16384 + floor(place / 64)] = place % 64
counter.count = math.max(counter.count, floor(call('PFCOUNT', name) / 1.025))
end
end
function distinct.look(counter, capacity, place, c)
local new = is_new(counter, place, c)
return not new or counter.count < capacity, counter.ends, counter.count, new and 1 or 0, 0
end
function distinct.take(counter, per_ms, place, c)
if not is_new(counter, place, c) then return end
if counter.count == 0 then counter.ends = aligned_end(per_ms) end
add_value(counter, place, c)
end
local longest_block_ms = 31622400000
local latest_moment_us = 9007199254740992
local function read_block(text, block_for_ms)
local until_us, length_ms = string.match(text or '', '^(%d+):(%d+)$')
if not until_us then until_us, length_ms = string.match(text or '', '^%d+$'), block_for_ms end
until_us, length_ms = tonumber(until_us or 0), tonumber(length_ms)
if until_us <= now_us or until_us > latest_moment_us then return 0, 0, false end
if length_ms < 1 or length_ms > longest_block_ms then return 0, 0, false end
local latest_us = now_us + length_ms * 1000
if until_us > latest_us then return latest_us, length_ms, true end
return until_us, length_ms, false
end
local function block_text(until_us, length_ms)
return string.format('%.0f:%.0f', until_us, length_ms)
end
local function blocked_for(text, block_for_ms)
local until_us, length_ms, brought_back = read_block(text, block_for_ms)
return math.ceil(math.max(until_us - now_us, 0) / 1000), brought_back and length_ms
end
local marks = {}
local function note_credit(mark_key, emptied, given)
local mark = marks[mark_key]
if mark == nil then mark = values[mark_key] end
local beginning, given_text = string.match(mark or '', '^([%w_-]+) (%d+)$')
if not beginning then return end
marks[mark_key] = not emptied and beginning .. ' ' .. format('%.0f', given_text + given)
end
local function write_marks()
for mark_key, mark in pairs(marks) do
if mark then
call('SET', KEYS[mark_key], mark, 'KEEPTTL')
else
call('DEL', KEYS[mark_key])
end
end
end
local epoch_form, epoch_bytes, ledger_tag = '<I4d', 12, 71
local epoch_ms, margin_ms, longest_hold_ms = 10000, 5000, 86400000
local function epoch_of(hold_ms)
return ceil((now_ms + hold_ms + margin_ms) / epoch_ms)
end
local latest_epoch = epoch_of(longest_hold_ms)
local ledgers = {}
local function add_units(ledger, epoch, amount)
ledger.units[epoch] = (ledger.units[epoch] or 0) + amount
ledger.total = ledger.total + amount
end
local function remove_units(ledger, epoch, amount)
local before = ledger.units[epoch] or 0
local removed = math.min(before, amount)
if removed == 0 then return 0 end
ledger.units[epoch] = before - removed
ledger.total = ledger.total - removed
ledger.changed = true
return removed
end
local function read_ledger(value)
local ledger = { units = {}, total = 0, changed = false }
if not value then return ledger end
local sum = byte(value) == ledger_tag and #value % epoch_bytes == 1 and 0
local position = 2
while sum and position < #value do
local epoch, units
epoch, units, position = unpack_from(epoch_form, value, position)
sum = is_whole(units) and is_whole(sum + units) and sum + units
if sum and epoch > latest_epoch then epoch, ledger.changed = latest_epoch, true end
if sum and epoch * epoch_ms > now_ms then add_units(ledger, epoch, units) end
end
if sum then return ledger end
foreign = foreign + 1
return { units = {}, total = 0, changed = false }
end
local function ledger_of(key)
local ledger = ledgers[key]
if not ledger then
ledger = read_ledger(values[key])
ledgers[key] = ledger
needed_ms[key] = life_until(latest_epoch * epoch_ms)
end
return ledger
end
local function grant_units(ledger, epoch, amount)
if amount == 0 then return end
add_units(ledger, epoch, amount)
ledger.changed = true
end
local function settle_units(ledger, epoch, spent, kept, returned, new_epoch)
local known = remove_units(ledger, epoch, kept)
remove_units(ledger, epoch, spent)
local given = remove_units(ledger, epoch, returned)
grant_units(ledger, new_epoch, known)
return given, known
end
local function write_ledger(name, ledger)
local text, last = string.char(ledger_tag), 0
for epoch, units in pairs(ledger.units) do
if units > 0 then
text, last = text .. pack(epoch_form, epoch, units), math.max(last, epoch)
end
end
if last == 0 then
call('DEL', name)
else
call('SET', name, text, 'PX', life_until(last * epoch_ms))
end
end
local function write_ledgers()
for key, ledger in pairs(ledgers) do
if ledger.changed then write_ledger(KEYS[key], ledger) end
end
end
local asks, position = ARGV[2], 1
local ask_form, limit_form, leased_form = '<HBdddddd', '<HHd', '<BBHHHdddddddd'
local reply = { now_us, 0, 0, 0 }
local function price(kind, cost, rate, a)
return kind <= 2 and ceil(cost * a / rate * 1048576) or a
end
local function credit_price(kind, cost, rate, a)
return kind <= 2 and floor(cost * a / rate * 1048576) or a
end
local function largest_fit(want, kind, counter, rate, most, capacity, a, b, c)
local left
if kind <= 2 then
left = (b - counter.ahead) / 1048576 * rate / a
elseif kind == 3 then
left = capacity - counter.count
else
left = capacity - counter.current - counter.previous * (counter.idle - a - now_ms) / a + 1
end
local cost = math.min(want, most, floor(left))
while cost > 0 and not look(kind, counter, cost, capacity, price(kind, cost, rate, a), b, c) do cost = cost - 1 end
return math.max(cost, 0)
end
local ledger_keys, allowances, given = {}, {}, {}
local owners, kinds, charging, keys, block_keys, mark_keys = {}, {}, {}, {}, {}, {}
local rates, mosts, capacities, as, bs, cs, block_fors, lives = {}, {}, {}, {}, {}, {}, {}, {}
while position <= #asks do
local limits, leasable, want, hold_ms, settled, spent, kept, returned
limits, leasable, want, hold_ms, settled, spent, kept, returned, position = unpack_from(ask_form, asks, position)
local steps, bounded = 0, true
for limit = 1, limits do
local windows
windows, ledger_keys[limit], allowances[limit], position = unpack_from(limit_form, asks, position)
for step = steps + 1, steps + windows do
owners[step] = limit
kinds[step], charging[step], keys[step], block_keys[step], mark_keys[step], rates[step], mosts[step],
capacities[step], as[step], bs[step], cs[step], block_fors[step], lives[step], position =
unpack_from(leased_form, asks, position)
if not within_bounds(kinds[step], as[step], cs[step], lives[step]) then bounded = false end
end
steps = steps + windows
end
local start = #reply
if not bounded then
reply[start + 1] = 4
for i = start + 2, start + 5 + 5 * steps do reply[i] = 0 end
else
local epoch, settles, forgotten = epoch_of(hold_ms), spent + kept + returned > 0, 0
for limit = 1, limits do
local ledger = ledger_of(ledger_keys[limit])
given[limit] = 0
if settles then
local known
given[limit], known = settle_units(ledger, settled / epoch_ms, spent, kept, returned, epoch)
forgotten = math.max(forgotten, kept - known)
end
want = math.min(want, ceil((allowances[limit] - ledger.total) / 2))
end
local granted = leasable == 1 and math.max(want, 0) or 0
for step = 1, steps do
local kind, key, rate, capacity, a, b, c =
kinds[step], keys[step], rates[step], capacities[step], as[step], bs[step], cs[step]
local counter = counter_of(kind, key, a, c, lives[step])
if kind <= 2 then clamp(counter, capacity, c) end
local cost = charging[step] == 1 and given[owners[step]] or 0
local credited = cost > 0 and credit(kind, counter, cost, credit_price(kind, cost, rate, a), b)
if credited then
touch(key, kind, a, lives[step])
note_credit(mark_keys[step], is_empty(kind, counter), credited)
end
if granted > 0 then granted = largest_fit(granted, kind, counter, rate, mosts[step], capacity, a, b, c) end
end
reply[start + 1], reply[start + 2], reply[start + 3], reply[start + 4] = 1, granted, epoch * epoch_ms, 0
reply[start + 5] = forgotten
local last = start + 5
for step = 1, steps do
local kind, key, capacity, a, b, c = kinds[step], keys[step], capacities[step], as[step], bs[step], cs[step]
local counter, block_key = counters[key], block_keys[step]
local _, one, two, three, four = look(kind, counter, 1, capacity, a, b, c)
reply[last + 1], reply[last + 2], reply[last + 3], reply[last + 4] = one, two, three, four
reply[last + 5] = block_key > 0 and blocked_for(values[block_key], block_fors[step]) or 0
last = last + 5
if granted > 0 then
take(kind, counter, granted, capacity, price(kind, granted, rates[step], a), b, c)
touch(key, kind, a, lives[step])
end
end
for limit = 1, limits do grant_units(ledgers[ledger_keys[limit]], epoch, granted) end
reply[start + 4] = ledgers[ledger_keys[1]].total
end
end
reply[3] = count_foreign()
write_all()
write_marks()
write_ledgers()
reply[4] = heal()
return reply
`,
  },
  /** Examines requests of any windows as a take would, and changes nothing. */
  peek: {
    digest: "cf2389f6c5e64906c1493a7dd5fa59117f5c802c",
    source: `local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = now_us / 1000
local late_us = ARGV[1] * 1000
if late_us > 0 and now_us > late_us then return { now_us, 1 } end
local floor = math.floor
local span = 9007199254740992
local passed = 0.75 * span
local whole_ms = floor(now_us / 1000)
local within_ms = floor(now_us % 1000 * 1048.576)
local at = whole_ms % 8589934592 * 1048576 + within_ms
local room = span - at
local renewal = 62914560000
local function read_wide(value)
local sign, ms, units = string.match(value, '^w(%-?)(%d+):(%d+)$')
if not sign then return nil end
local distance = (ms - whole_ms) * 1048576 + (units - within_ms)
return distance > 0 and distance or 0, sign == '-'
end
local function read_ahead(word)
local ms, units = string.match(word, '^(%d+):(%d+)$')
return ms and (ms - whole_ms) * 1048576 + (units - within_ms) or 0
end
local function instant_text(ahead)
local units = within_ms + ahead
local ms = floor(units / 1048576)
return string.format('%.0f:%.0f', whole_ms + ms, units - ms * 1048576)
end
local function arrival_text(ahead, debt)
local arrival = ahead < room and at + ahead or ahead - room
if not debt then return string.format('%.0f', arrival) end
return string.format('-%.0f', arrival == 0 and span or arrival)
end
local pack, unpack_from, byte, format = struct.pack, struct.unpack, string.byte, string.format
local ceil, call = math.ceil, redis.call
local head_form, window_form = '<HBHHH', '<BHBHHHddddddd'
local window_bytes = 66
local once_ms = 2592000000
local slack_ms = 1000
local exact_entries = 256
local values = #KEYS > 0 and call('MGET', unpack(KEYS)) or {}
local counters, needed_ms, foreign = {}, {}, 0
local distinct = {}
local function read_arrival(value)
local counter = { ahead = 0 }
local number = value and tonumber(value)
if number and number % 1 == 0 then
local distance = ((number < 0 and -number or number) - at) % span
if distance <= passed then
counter.ahead = distance
counter.debt = number < 0
end
if number >= 0 then counter.stored = number end
elseif value then
local ahead, debt = read_wide(value)
if ahead then
counter.ahead, counter.debt = ahead, debt
else
foreign = foreign + 1
end
end
return counter
end
local function is_whole(number)
return number >= 0 and number <= span and number % 1 == 0
end
local function read_packed(value, tag, form, length)
if not value then return 0, 0, 0 end
if #value == length and byte(value) == tag then
local _, one, two, three = unpack_from(form, value)
if is_whole(one) and is_whole(two) and (length == 17 or is_whole(three)) then return one, two, three end
end
foreign = foreign + 1
return 0, 0, 0
end
local function read_log(value)
local counter = { entries = {}, first = 1, used = 0 }
if not value then return counter end
if byte(value) ~= 76 or #value % 16 ~= 1 then
foreign = foreign + 1
return counter
end
local entries = counter.entries
local before = 0
for position = 2, #value, 16 do
local time, cost = unpack_from('<dd', value, position)
counter.used = counter.used + cost
if not (time >= before and time <= span and is_whole(cost) and counter.used <= span) then
foreign = foreign + 1
return { entries = {}, first = 1, used = 0 }
end
before = time
if time > now_ms then time, counter.misfit = now_ms, true end
entries[#entries + 1] = time
entries[#entries + 1] = cost
end
return counter
end
local function read_record(value)
local updated, denied = string.match(value or '', '^(%d+) (%d+)$')
updated, denied = tonumber(updated), tonumber(denied)
if updated and updated <= span and denied <= span then return { updated = updated, denied = denied } end
if value then foreign = foreign + 1 end
return { updated = 0, denied = 0 }
end
local function settle(counter, per_ms)
local entries, first = counter.entries, counter.first
while first < #entries and now_ms - entries[first] >= per_ms do
counter.used = counter.used - entries[first + 1]
first = first + 2
end
counter.first = first
end
local function add_entry(counter, cost, per_ms)
local entries = counter.entries
counter.used = counter.used + cost
if #entries > counter.first and entries[#entries - 1] == now_ms then
entries[#entries] = entries[#entries] + cost
return
end
entries[#entries + 1] = now_ms
entries[#entries + 1] = cost
if (#entries - counter.first + 1) / 2 <= exact_entries then return end
local slot_ms, merged, slot = per_ms / exact_entries, {}, nil
for i = counter.first, #entries, 2 do
local slot_of_entry = floor(entries[i] / slot_ms)
if slot_of_entry == slot then
merged[#merged - 1] = entries[i]
merged[#merged] = merged[#merged] + entries[i + 1]
else
merged[#merged + 1] = entries[i]
merged[#merged + 1] = entries[i + 1]
slot = slot_of_entry
end
end
counter.entries, counter.first = merged, 1
end
local function aligned_end(per_ms)
return (floor(floor(now_ms) / per_ms) + 1) * per_ms
end
local function counter_of(kind, key, a, c, life_ms)
local counter = counters[key]
if not counter then
local value = values[key]
if kind <= 2 then
counter = read_arrival(value)
elseif kind == 3 or kind == 7 then
local ends, count = read_packed(value, 67, '<Bdd', 17)
counter = { ends = ends, count = count }
elseif kind == 4 then
local idle, current, previous = read_packed(value, 83, '<Bddd', 25)
counter = { idle = idle, current = current, previous = previous }
elseif kind == 5 then
counter = read_log(value)
else
counter = read_record(value)
end
counters[key] = counter
needed_ms[key] = kind == 3 and a < 0 and 2 * once_ms or life_ms
end
if kind == 3 or kind == 7 then
local latest = a > 0 and aligned_end(a) or a == 0 and ceil(now_ms) + once_ms or c
if counter.ends > latest then counter.ends, counter.misfit = latest, true end
if counter.ends <= now_ms then counter.count = 0 end
elseif kind == 4 then
local latest = aligned_end(a) + a
if counter.idle > latest then counter.idle, counter.misfit = latest, true end
if now_ms >= counter.idle then
counter.idle, counter.current, counter.previous = aligned_end(a) + a, 0, 0
elseif now_ms >= counter.idle - a then
counter.idle, counter.current, counter.previous = counter.idle + a, 0, counter.current
end
elseif kind == 5 then
settle(counter, a)
end
return counter
end
local function clamp(counter, full, furthest)
if counter.ahead > furthest and not (counter.debt and counter.ahead <= 2 * furthest) then
counter.ahead, counter.debt, counter.stored, counter.misfit = full, nil, nil, true
end
end
local function next_freed(counter, capacity, per_ms)
local entries, first, freed = counter.entries, counter.first, counter.first
if freed > #entries then return 0 end
local used = counter.used - entries[freed + 1]
while used >= capacity and freed + 2 < #entries do
freed = freed + 2
used = used - entries[freed + 1]
end
local dated_ms = entries[freed]
if (#entries - first + 1) / 2 >= exact_entries and entries[#entries - 1] ~= now_ms then
local slot_ms = per_ms / exact_entries
local slot = floor(dated_ms / slot_ms)
while freed + 2 < #entries and floor(entries[freed + 2] / slot_ms) == slot do freed = freed + 2 end
dated_ms = freed + 1 == #entries and floor(now_ms / slot_ms) == slot and now_ms or entries[freed]
end
return ceil(per_ms - (now_ms - dated_ms))
end
local function look(kind, counter, cost, capacity, a, b, c)
if kind <= 2 then
clamp(counter, capacity, c)
return counter.ahead + a <= b, counter.ahead, 0, 0, 0
elseif kind == 3 then
return counter.count + cost <= capacity, counter.ends, counter.count, 0, 0
elseif kind == 4 then
local until_end = counter.idle - a - now_ms
local fits = cost <= capacity and counter.previous * until_end + (counter.current + cost - capacity) * a <= 0
return fits, counter.idle, counter.current, counter.previous, 0
elseif kind == 6 then
return true, counter.updated, counter.denied, 0, 0
elseif kind == 7 then
return distinct.look(counter, capacity, b, c)
end
local entries, used, wait_ms = counter.entries, counter.used, 0
if used + cost <= capacity or cost > capacity then
wait_ms = next_freed(counter, capacity, a)
else
for i = counter.first, #entries, 2 do
if used + cost <= capacity then break end
used = used - entries[i + 1]
wait_ms = ceil(a - (now_ms - entries[i]))
end
end
local reset_ms = #entries > counter.first and ceil(a - (now_ms - entries[#entries - 1])) or 0
return counter.used + cost <= capacity, counter.used, wait_ms, reset_ms, (#entries - counter.first + 1) / 2
end
local function end_of_count(counter, a, b, c)
if a == 0 then return ceil(now_ms) + once_ms end
if counter.count > 0 then return counter.ends end
if a > 0 then return aligned_end(a) end
return now_ms < b and b or c
end
local function within_bounds(kind, a, c, began_ms)
return kind ~= 3 or a >= 0 or (now_ms >= began_ms and now_ms < c)
end
local function take(kind, counter, cost, capacity, a, b, c)
if kind <= 2 then
local after = counter.ahead + a
if after <= b then
counter.ahead, counter.debt = after, nil
else
local bounded = math.min(after, b + capacity)
counter.ahead, counter.debt, counter.stored = math.max(counter.ahead, bounded), true, nil
end
elseif kind == 3 then
counter.ends = end_of_count(counter, a, b, c)
counter.count = math.max(counter.count, math.min(counter.count + cost, 2 * capacity))
elseif kind == 4 then
counter.current = math.max(counter.current, math.min(counter.current + cost, 2 * capacity))
elseif kind == 7 then
distinct.take(counter, a, b, c)
else
local bounded = math.min(cost, 2 * capacity - counter.used)
if bounded > 0 then add_entry(counter, bounded, a) end
end
end
local function credit(kind, counter, cost, a, b)
if kind <= 2 then
if counter.ahead == 0 then return nil end
local given = math.min(a, counter.ahead)
counter.ahead = counter.ahead - given
if counter.ahead <= b then counter.debt = nil end
return given
elseif kind == 3 then
if counter.count == 0 then return nil end
counter.count = math.max(counter.count - cost, 0)
elseif kind == 7 then
return nil
elseif kind == 4 then
if counter.current + counter.previous == 0 then return nil end
local rest = cost - math.min(cost, counter.current)
if rest == 0 then
counter.current = counter.current - cost
return 0
end
local until_end = counter.idle - a - now_ms
local units = floor(rest * a / until_end)
if units * until_end > rest * a then units = units - 1 end
counter.current, counter.previous = 0, math.max(counter.previous - units, 0)
else
local entries = counter.entries
if #entries < counter.first then return nil end
while cost > 0 and #entries > counter.first do
local removed = math.min(entries[#entries], cost)
cost, counter.used = cost - removed, counter.used - removed
entries[#entries] = entries[#entries] - removed
if entries[#entries] == 0 then entries[#entries], entries[#entries - 1] = nil, nil end
end
end
return 0
end
local function is_empty(kind, counter)
if kind <= 2 then return counter.ahead == 0 end
if kind == 3 then return counter.count == 0 end
if kind == 4 then return counter.current + counter.previous == 0 end
return counter.used == 0
end
local function life_until(instant_ms)
return ceil(instant_ms - now_ms) + slack_ms
end
local function log_text(counter)
local parts, entries = { 'L' }, counter.entries
for i = counter.first, #entries, 2 do parts[#parts + 1] = pack('<dd', entries[i], entries[i + 1]) end
return table.concat(parts)
end
local function write_arrival(name, counter, life_ms)
local arrival = counter.ahead < room and at + counter.ahead or counter.ahead - room
local before = counter.stored
if counter.debt then
call('SET', name, arrival_text(counter.ahead, true), 'PX', life_ms)
elseif not before or floor(before / renewal) ~= floor(arrival / renewal)
or type(redis.pcall('INCRBY', name, arrival - before)) ~= 'number' then
call('SET', name, arrival, 'PX', life_ms)
end
end
local function write(kind, name, counter, a, life_ms)
if kind == 1 then
write_arrival(name, counter, life_ms)
elseif kind == 2 then
call('SET', name, (counter.debt and 'w-' or 'w') .. instant_text(counter.ahead), 'PX', life_ms)
elseif kind == 3 or kind == 7 then
call('SET', name, pack('<Bdd', 67, counter.ends, counter.count), 'PX', life_until(counter.ends))
elseif kind == 4 then
call('SET', name, pack('<Bddd', 83, counter.idle, counter.current, counter.previous), 'PX', life_until(counter.idle))
elseif kind == 6 then
call('SET', name, format('%.0f %.0f', counter.updated, counter.denied), 'PX', ceil(life_ms))
else
call('SET', name, log_text(counter), 'PX', life_until(now_ms + a))
end
end
local dirty, kind_of, a_of, life_of = {}, {}, {}, {}
local function touch(key, kind, a, life_ms)
if not kind_of[key] then dirty[#dirty + 1] = key end
kind_of[key], a_of[key], life_of[key] = kind, a, life_ms
end
local function write_all()
for i = 1, #dirty do
local key = dirty[i]
write(kind_of[key], KEYS[key], counters[key], a_of[key], life_of[key])
end
end
local function heal()
if #KEYS == 0 then return 0 end
local looked_at = now_us % #KEYS + 1
if not values[looked_at] or call('PTTL', KEYS[looked_at]) ~= -1 then return 0 end
call('PEXPIRE', KEYS[looked_at], needed_ms[looked_at] or once_ms)
return 1
end
local function count_foreign()
local absent = {}
for key = 1, #KEYS do
if not values[key] then absent[#absent + 1] = KEYS[key] end
end
if #absent == 0 then return foreign end
return foreign + call('EXISTS', unpack(absent))
end
local exact_values, sketch_bytes = 1536, 12304
local empty_sketch_head = 'HYLL\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\128'
local raised = {}
local function has_value(text, value)
local from = 2
while true do
local found = string.find(text, value, from, true)
if not found then return false end
if found % 8 == 2 then return true end
from = found + 1
end
end
local function is_sketch(text)
return #text == sketch_bytes and string.sub(text, 1, 5) == 'HYLL\\0'
end
local function is_new(counter, place, c)
if counter.count == 0 then return true end
local key = floor(c / 65536)
local text = values[key]
if text and byte(text) == 86 and #text % 8 == 1 then return not has_value(text, ARGV[c % 65536]) end
if text and is_sketch(text) then
local register, rank = floor(place / 64), place % 64
local bits = register * 6
local first, second = byte(text, 17 + floor(bits / 8), 18 + floor(bits / 8))
local held = floor((first + 256 * (second or 0)) / 2 ^ (bits % 8)) % 64
return held < rank and (raised[key * 16384 + register] or 0) < rank
end
if text then foreign = foreign + 1 end
counter.count = 0
return true
end
local function blur(name, text, life_ms)
call('SET', name, empty_sketch_head .. string.rep('\\0', sketch_bytes - 16), 'PX', life_ms)
for from = 2, #text, 800 do
local some = {}
for position = from, math.min(from + 792, #text), 8 do some[#some + 1] = string.sub(text, position, position + 7) end
call('PFADD', name, unpack(some))
end
end
local function add_value(counter, place, c)
local key, value = floor(c / 65536), ARGV[c % 65536]
local name, life_ms = KEYS[key], life_until(counter.ends)
if counter.count == 0 then
values[key] = 'V' .. value
call('SET', name, values[key], 'PX', life_ms)
counter.count = 1
elseif byte(values[key]) == 86 and #values[key] < 8 * exact_values then
values[key] = values[key] .. value
call('APPEND', name, value)
counter.count = counter.count + 1
else
local is_exact = byte(values[key]) == 86
if is_exact then blur(name, values[key], life_ms) end
call('PFADD', name, value)
if is_exact then values[key] = call('GET', name) end
raised[key * 16384 + floor(place / 64)] = place % 64
counter.count = math.max(counter.count, floor(call('PFCOUNT', name) / 1.025))
end
end
function distinct.look(counter, capacity, place, c)
local new = is_new(counter, place, c)
return not new or counter.count < capacity, counter.ends, counter.count, new and 1 or 0, 0
end
function distinct.take(counter, per_ms, place, c)
if not is_new(counter, place, c) then return end
if counter.count == 0 then counter.ends = aligned_end(per_ms) end
add_value(counter, place, c)
end
local longest_block_ms = 31622400000
local latest_moment_us = 9007199254740992
local function read_block(text, block_for_ms)
local until_us, length_ms = string.match(text or '', '^(%d+):(%d+)$')
if not until_us then until_us, length_ms = string.match(text or '', '^%d+$'), block_for_ms end
until_us, length_ms = tonumber(until_us or 0), tonumber(length_ms)
if until_us <= now_us or until_us > latest_moment_us then return 0, 0, false end
if length_ms < 1 or length_ms > longest_block_ms then return 0, 0, false end
local latest_us = now_us + length_ms * 1000
if until_us > latest_us then return latest_us, length_ms, true end
return until_us, length_ms, false
end
local function block_text(until_us, length_ms)
return string.format('%.0f:%.0f', until_us, length_ms)
end
local function blocked_for(text, block_for_ms)
local until_us, length_ms, brought_back = read_block(text, block_for_ms)
return math.ceil(math.max(until_us - now_us, 0) / 1000), brought_back and length_ms
end
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
`,
  },
  /** Settles a hold: reports what its work has cost, extends it, ends it when its time is up, or undoes it. */
  settleHold: {
    digest: "2b2274722fefdda538cd2e18400761cf72abf2e4",
    source: `local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = now_us / 1000
local floor = math.floor
local span = 9007199254740992
local passed = 0.75 * span
local whole_ms = floor(now_us / 1000)
local within_ms = floor(now_us % 1000 * 1048.576)
local at = whole_ms % 8589934592 * 1048576 + within_ms
local room = span - at
local renewal = 62914560000
local function read_wide(value)
local sign, ms, units = string.match(value, '^w(%-?)(%d+):(%d+)$')
if not sign then return nil end
local distance = (ms - whole_ms) * 1048576 + (units - within_ms)
return distance > 0 and distance or 0, sign == '-'
end
local function read_ahead(word)
local ms, units = string.match(word, '^(%d+):(%d+)$')
return ms and (ms - whole_ms) * 1048576 + (units - within_ms) or 0
end
local function instant_text(ahead)
local units = within_ms + ahead
local ms = floor(units / 1048576)
return string.format('%.0f:%.0f', whole_ms + ms, units - ms * 1048576)
end
local function arrival_text(ahead, debt)
local arrival = ahead < room and at + ahead or ahead - room
if not debt then return string.format('%.0f', arrival) end
return string.format('-%.0f', arrival == 0 and span or arrival)
end
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
local KEYS = {}
for i = head_length + 1, hold and #hold or 0 do KEYS[i - head_length] = hold[i][1] end
local pack, unpack_from, byte, format = struct.pack, struct.unpack, string.byte, string.format
local ceil, call = math.ceil, redis.call
local head_form, window_form = '<HBHHH', '<BHBHHHddddddd'
local window_bytes = 66
local once_ms = 2592000000
local slack_ms = 1000
local exact_entries = 256
local values = #KEYS > 0 and call('MGET', unpack(KEYS)) or {}
local counters, needed_ms, foreign = {}, {}, 0
local distinct = {}
local function read_arrival(value)
local counter = { ahead = 0 }
local number = value and tonumber(value)
if number and number % 1 == 0 then
local distance = ((number < 0 and -number or number) - at) % span
if distance <= passed then
counter.ahead = distance
counter.debt = number < 0
end
if number >= 0 then counter.stored = number end
elseif value then
local ahead, debt = read_wide(value)
if ahead then
counter.ahead, counter.debt = ahead, debt
else
foreign = foreign + 1
end
end
return counter
end
local function is_whole(number)
return number >= 0 and number <= span and number % 1 == 0
end
local function read_packed(value, tag, form, length)
if not value then return 0, 0, 0 end
if #value == length and byte(value) == tag then
local _, one, two, three = unpack_from(form, value)
if is_whole(one) and is_whole(two) and (length == 17 or is_whole(three)) then return one, two, three end
end
foreign = foreign + 1
return 0, 0, 0
end
local function read_log(value)
local counter = { entries = {}, first = 1, used = 0 }
if not value then return counter end
if byte(value) ~= 76 or #value % 16 ~= 1 then
foreign = foreign + 1
return counter
end
local entries = counter.entries
local before = 0
for position = 2, #value, 16 do
local time, cost = unpack_from('<dd', value, position)
counter.used = counter.used + cost
if not (time >= before and time <= span and is_whole(cost) and counter.used <= span) then
foreign = foreign + 1
return { entries = {}, first = 1, used = 0 }
end
before = time
if time > now_ms then time, counter.misfit = now_ms, true end
entries[#entries + 1] = time
entries[#entries + 1] = cost
end
return counter
end
local function read_record(value)
local updated, denied = string.match(value or '', '^(%d+) (%d+)$')
updated, denied = tonumber(updated), tonumber(denied)
if updated and updated <= span and denied <= span then return { updated = updated, denied = denied } end
if value then foreign = foreign + 1 end
return { updated = 0, denied = 0 }
end
local function settle(counter, per_ms)
local entries, first = counter.entries, counter.first
while first < #entries and now_ms - entries[first] >= per_ms do
counter.used = counter.used - entries[first + 1]
first = first + 2
end
counter.first = first
end
local function add_entry(counter, cost, per_ms)
local entries = counter.entries
counter.used = counter.used + cost
if #entries > counter.first and entries[#entries - 1] == now_ms then
entries[#entries] = entries[#entries] + cost
return
end
entries[#entries + 1] = now_ms
entries[#entries + 1] = cost
if (#entries - counter.first + 1) / 2 <= exact_entries then return end
local slot_ms, merged, slot = per_ms / exact_entries, {}, nil
for i = counter.first, #entries, 2 do
local slot_of_entry = floor(entries[i] / slot_ms)
if slot_of_entry == slot then
merged[#merged - 1] = entries[i]
merged[#merged] = merged[#merged] + entries[i + 1]
else
merged[#merged + 1] = entries[i]
merged[#merged + 1] = entries[i + 1]
slot = slot_of_entry
end
end
counter.entries, counter.first = merged, 1
end
local function aligned_end(per_ms)
return (floor(floor(now_ms) / per_ms) + 1) * per_ms
end
local function counter_of(kind, key, a, c, life_ms)
local counter = counters[key]
if not counter then
local value = values[key]
if kind <= 2 then
counter = read_arrival(value)
elseif kind == 3 or kind == 7 then
local ends, count = read_packed(value, 67, '<Bdd', 17)
counter = { ends = ends, count = count }
elseif kind == 4 then
local idle, current, previous = read_packed(value, 83, '<Bddd', 25)
counter = { idle = idle, current = current, previous = previous }
elseif kind == 5 then
counter = read_log(value)
else
counter = read_record(value)
end
counters[key] = counter
needed_ms[key] = kind == 3 and a < 0 and 2 * once_ms or life_ms
end
if kind == 3 or kind == 7 then
local latest = a > 0 and aligned_end(a) or a == 0 and ceil(now_ms) + once_ms or c
if counter.ends > latest then counter.ends, counter.misfit = latest, true end
if counter.ends <= now_ms then counter.count = 0 end
elseif kind == 4 then
local latest = aligned_end(a) + a
if counter.idle > latest then counter.idle, counter.misfit = latest, true end
if now_ms >= counter.idle then
counter.idle, counter.current, counter.previous = aligned_end(a) + a, 0, 0
elseif now_ms >= counter.idle - a then
counter.idle, counter.current, counter.previous = counter.idle + a, 0, counter.current
end
elseif kind == 5 then
settle(counter, a)
end
return counter
end
local function clamp(counter, full, furthest)
if counter.ahead > furthest and not (counter.debt and counter.ahead <= 2 * furthest) then
counter.ahead, counter.debt, counter.stored, counter.misfit = full, nil, nil, true
end
end
local function next_freed(counter, capacity, per_ms)
local entries, first, freed = counter.entries, counter.first, counter.first
if freed > #entries then return 0 end
local used = counter.used - entries[freed + 1]
while used >= capacity and freed + 2 < #entries do
freed = freed + 2
used = used - entries[freed + 1]
end
local dated_ms = entries[freed]
if (#entries - first + 1) / 2 >= exact_entries and entries[#entries - 1] ~= now_ms then
local slot_ms = per_ms / exact_entries
local slot = floor(dated_ms / slot_ms)
while freed + 2 < #entries and floor(entries[freed + 2] / slot_ms) == slot do freed = freed + 2 end
dated_ms = freed + 1 == #entries and floor(now_ms / slot_ms) == slot and now_ms or entries[freed]
end
return ceil(per_ms - (now_ms - dated_ms))
end
local function look(kind, counter, cost, capacity, a, b, c)
if kind <= 2 then
clamp(counter, capacity, c)
return counter.ahead + a <= b, counter.ahead, 0, 0, 0
elseif kind == 3 then
return counter.count + cost <= capacity, counter.ends, counter.count, 0, 0
elseif kind == 4 then
local until_end = counter.idle - a - now_ms
local fits = cost <= capacity and counter.previous * until_end + (counter.current + cost - capacity) * a <= 0
return fits, counter.idle, counter.current, counter.previous, 0
elseif kind == 6 then
return true, counter.updated, counter.denied, 0, 0
elseif kind == 7 then
return distinct.look(counter, capacity, b, c)
end
local entries, used, wait_ms = counter.entries, counter.used, 0
if used + cost <= capacity or cost > capacity then
wait_ms = next_freed(counter, capacity, a)
else
for i = counter.first, #entries, 2 do
if used + cost <= capacity then break end
used = used - entries[i + 1]
wait_ms = ceil(a - (now_ms - entries[i]))
end
end
local reset_ms = #entries > counter.first and ceil(a - (now_ms - entries[#entries - 1])) or 0
return counter.used + cost <= capacity, counter.used, wait_ms, reset_ms, (#entries - counter.first + 1) / 2
end
local function end_of_count(counter, a, b, c)
if a == 0 then return ceil(now_ms) + once_ms end
if counter.count > 0 then return counter.ends end
if a > 0 then return aligned_end(a) end
return now_ms < b and b or c
end
local function within_bounds(kind, a, c, began_ms)
return kind ~= 3 or a >= 0 or (now_ms >= began_ms and now_ms < c)
end
local function take(kind, counter, cost, capacity, a, b, c)
if kind <= 2 then
local after = counter.ahead + a
if after <= b then
counter.ahead, counter.debt = after, nil
else
local bounded = math.min(after, b + capacity)
counter.ahead, counter.debt, counter.stored = math.max(counter.ahead, bounded), true, nil
end
elseif kind == 3 then
counter.ends = end_of_count(counter, a, b, c)
counter.count = math.max(counter.count, math.min(counter.count + cost, 2 * capacity))
elseif kind == 4 then
counter.current = math.max(counter.current, math.min(counter.current + cost, 2 * capacity))
elseif kind == 7 then
distinct.take(counter, a, b, c)
else
local bounded = math.min(cost, 2 * capacity - counter.used)
if bounded > 0 then add_entry(counter, bounded, a) end
end
end
local function credit(kind, counter, cost, a, b)
if kind <= 2 then
if counter.ahead == 0 then return nil end
local given = math.min(a, counter.ahead)
counter.ahead = counter.ahead - given
if counter.ahead <= b then counter.debt = nil end
return given
elseif kind == 3 then
if counter.count == 0 then return nil end
counter.count = math.max(counter.count - cost, 0)
elseif kind == 7 then
return nil
elseif kind == 4 then
if counter.current + counter.previous == 0 then return nil end
local rest = cost - math.min(cost, counter.current)
if rest == 0 then
counter.current = counter.current - cost
return 0
end
local until_end = counter.idle - a - now_ms
local units = floor(rest * a / until_end)
if units * until_end > rest * a then units = units - 1 end
counter.current, counter.previous = 0, math.max(counter.previous - units, 0)
else
local entries = counter.entries
if #entries < counter.first then return nil end
while cost > 0 and #entries > counter.first do
local removed = math.min(entries[#entries], cost)
cost, counter.used = cost - removed, counter.used - removed
entries[#entries] = entries[#entries] - removed
if entries[#entries] == 0 then entries[#entries], entries[#entries - 1] = nil, nil end
end
end
return 0
end
local function is_empty(kind, counter)
if kind <= 2 then return counter.ahead == 0 end
if kind == 3 then return counter.count == 0 end
if kind == 4 then return counter.current + counter.previous == 0 end
return counter.used == 0
end
local function life_until(instant_ms)
return ceil(instant_ms - now_ms) + slack_ms
end
local function log_text(counter)
local parts, entries = { 'L' }, counter.entries
for i = counter.first, #entries, 2 do parts[#parts + 1] = pack('<dd', entries[i], entries[i + 1]) end
return table.concat(parts)
end
local function write_arrival(name, counter, life_ms)
local arrival = counter.ahead < room and at + counter.ahead or counter.ahead - room
local before = counter.stored
if counter.debt then
call('SET', name, arrival_text(counter.ahead, true), 'PX', life_ms)
elseif not before or floor(before / renewal) ~= floor(arrival / renewal)
or type(redis.pcall('INCRBY', name, arrival - before)) ~= 'number' then
call('SET', name, arrival, 'PX', life_ms)
end
end
local function write(kind, name, counter, a, life_ms)
if kind == 1 then
write_arrival(name, counter, life_ms)
elseif kind == 2 then
call('SET', name, (counter.debt and 'w-' or 'w') .. instant_text(counter.ahead), 'PX', life_ms)
elseif kind == 3 or kind == 7 then
call('SET', name, pack('<Bdd', 67, counter.ends, counter.count), 'PX', life_until(counter.ends))
elseif kind == 4 then
call('SET', name, pack('<Bddd', 83, counter.idle, counter.current, counter.previous), 'PX', life_until(counter.idle))
elseif kind == 6 then
call('SET', name, format('%.0f %.0f', counter.updated, counter.denied), 'PX', ceil(life_ms))
else
call('SET', name, log_text(counter), 'PX', life_until(now_ms + a))
end
end
local dirty, kind_of, a_of, life_of = {}, {}, {}, {}
local function touch(key, kind, a, life_ms)
if not kind_of[key] then dirty[#dirty + 1] = key end
kind_of[key], a_of[key], life_of[key] = kind, a, life_ms
end
local function write_all()
for i = 1, #dirty do
local key = dirty[i]
write(kind_of[key], KEYS[key], counters[key], a_of[key], life_of[key])
end
end
local function heal()
if #KEYS == 0 then return 0 end
local looked_at = now_us % #KEYS + 1
if not values[looked_at] or call('PTTL', KEYS[looked_at]) ~= -1 then return 0 end
call('PEXPIRE', KEYS[looked_at], needed_ms[looked_at] or once_ms)
return 1
end
local function count_foreign()
local absent = {}
for key = 1, #KEYS do
if not values[key] then absent[#absent + 1] = KEYS[key] end
end
if #absent == 0 then return foreign end
return foreign + call('EXISTS', unpack(absent))
end
local call, format = redis.call, string.format
local function text_of(name)
local value = redis.pcall('GET', name)
return type(value) == 'string' and value or nil
end
local function read_mark(name)
return string.match(text_of(name) or '', '^([%w_-]+) (%d+)$')
end
local function give_arrival(name, cost_worth, tolerance, taken, given_since)
local value = text_of(name)
if not value then return nil end
local number, ends, debt = tonumber(value), nil, nil
local wide = not (number and number % 1 == 0)
if wide then
ends, debt = read_wide(value)
else
ends, debt = (math.abs(number) - at) % span, number < 0
end
if not ends or ends > passed and not wide then return nil end
local still = taken - given_since
if taken <= 0 or still <= 0 or ends < still then return nil end
local given = math.min(cost_worth, still)
local left = ends - given
debt = debt and left > tolerance
return wide and (debt and 'w-' or 'w') .. instant_text(left) or arrival_text(left, debt), given
end
local function write_given(name, text, mark_name, begun, given_text, given)
call('SET', name, text, 'KEEPTTL')
if given > 0 then call('SET', mark_name, begun .. ' ' .. format('%.0f', given_text + given), 'KEEPTTL') end
end
local pack, unpack_from, byte = struct.pack, struct.unpack, string.byte
local function give_count(name, cost, ends)
local value = text_of(name)
if not value or #value ~= 17 or byte(value) ~= 67 then return nil end
local _, stored_ends, count = unpack_from('<Bdd', value)
if now_ms >= ends or stored_ends <= now_ms or count < cost then return nil end
return pack('<Bdd', 67, stored_ends, count - cost), 0
end
local function give_sliding(name, cost, idle, per_ms)
local value = text_of(name)
if not value or #value ~= 25 or byte(value) ~= 83 or now_ms >= idle then return nil end
local _, stored_idle, current, previous = unpack_from('<Bddd', value)
if stored_idle == idle and current >= cost then
return pack('<Bddd', 83, stored_idle, current - cost, previous), 0
elseif stored_idle == idle + per_ms and previous >= cost then
return pack('<Bddd', 83, stored_idle, current, previous - cost), 0
end
return nil
end
local function give_log(name, cost, taken_ms, per_ms)
local value = text_of(name)
if not value or byte(value) ~= 76 or #value % 16 ~= 1 or now_ms >= taken_ms + per_ms then return nil end
for position = 2, #value, 16 do
local time, held = unpack_from('<dd', value, position)
if time >= taken_ms then
if held < cost then return nil end
local entry = held > cost and pack('<dd', time, held - cost) or ''
return string.sub(value, 1, position - 1) .. entry .. string.sub(value, position + 16), 0
end
end
return nil
end
local function give_counted(kind, name, cost, a, taken_ms, word)
if kind == 3 then return give_count(name, cost, word) end
if kind == 4 then return give_sliding(name, cost, word, a) end
return give_log(name, cost, taken_ms, a)
end
local remember_hold_ms = 600000
local most_ordered = 500
local new_holds = {}
local function note_hold_later(index_name, name, expires_us, windows, life_ms)
new_holds[#new_holds + 1] = { index_name, name, expires_us, windows, life_ms }
end
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
local name, action, number = ARGV[1], ARGV[2], ARGV[3] + 0
local function answer(replayed)
if not hold then return { now_us, 0, 0, 0, 0, 0, 0, 0 } end
return { now_us, 0, hold[2], hold[3], hold[4], hold[5], hold[6], replayed and 1 or 0 }
end
local function place_of(text)
local word, before, behind = string.match(text or '', '^(%d+:%d+) (%d+) (%d+)$')
return word, tonumber(before), tonumber(behind)
end
local function move_others(noted_in, ends, given_before, given, life_ms)
local all, moved = redis.pcall('HGETALL', noted_in), {}
for i = 1, #all, 2 do
local word, before, behind = place_of(all[i + 1])
if word and all[i] ~= name and read_ahead(word) - (given_before - before - behind) < ends then
moved[#moved + 1], moved[#moved + 2] = all[i], place_text(word, before, behind + given)
end
end
if #moved > 0 then note(life_ms, 'HSET', noted_in, unpack(moved)) end
end
local function worth(cost, limit, per_ms)
return ceil(cost * per_ms / limit * 1048576)
end
local function give_back(key, window, cost)
local counter_name, mark_name, kind, _, a, b, taken_ms, word, beginning, before, _, _, life_ms, limit, per_ms, noted_in =
unpack(window)
local begun, given_text = read_mark(mark_name)
if begun ~= beginning then return 0 end
local text, given, moved, is_ordered
if kind <= 2 then
local _, _, behind = place_of(redis.pcall('HGET', noted_in, name) or '')
is_ordered = behind ~= nil
moved = given_text - before - (behind or 0)
text, given = give_arrival(counter_name, worth(cost, limit, per_ms), b, read_ahead(word), moved)
else
text, given = give_counted(kind, counter_name, cost, a, taken_ms, word)
end
if not text then return 0 end
write_given(counter_name, text, mark_name, begun, given_text, given)
values[key] = text
if kind > 2 then return cost end
if is_ordered then move_others(noted_in, read_ahead(word) - moved, given_text + 0, given, life_ms) end
return math.min(cost, ceil(given / 1048576 * limit / per_ms))
end
local function charge(key, window, cost)
local _, _, kind, _, a, b, _, _, _, _, capacity, c, life_ms, limit, per_ms = unpack(window)
if kind <= 2 then a = worth(cost, limit, per_ms) end
while kind == 3 and a < 0 and now_ms >= c do
life_ms, b, c = b, c, c + (c - b)
end
local counter = counter_of(kind, key, a, c, life_ms)
look(kind, counter, cost, capacity, a, b, c)
take(kind, counter, cost, capacity, a, b, c)
touch(key, kind, a, life_ms)
end
local function give_all_back(actual)
for i = head_length + 1, #hold do
local window = hold[i]
if window[4] > actual then window[4] = window[4] - give_back(i - head_length, window, window[4] - actual) end
end
end
local function release()
redis.pcall('ZREM', index_name, name)
for i = head_length + 1, #hold do
if hold[i][16] ~= '' then redis.pcall('HDEL', hold[i][16], name) end
end
end
local function finish(state)
if hold[2] == 1 then release() end
hold[2], hold[7] = state, now_us + remember_hold_ms * 1000
end
local function store()
local until_us = hold[2] == 1 and hold[6] + remember_hold_ms * 1000 or hold[7]
call('SET', hold_name, cmsgpack.pack(hold), 'PX', ceil((until_us - now_us) / 1000) + slack_ms)
end
if hold and hold[2] > 1 and hold[7] <= now_us then hold = nil end
if not hold then
redis.pcall('ZREM', index_name, name)
return answer()
end
if action == 'undo' then
if hold[2] ~= 1 then return answer() end
give_all_back(0)
release()
call('DEL', hold_name)
if hold[1] ~= '' then call('DEL', hold[1]) end
return answer()
end
if hold[2] == 1 and hold[6] <= now_us then
give_all_back(hold[4])
hold[5] = 1
finish(2)
store()
end
if hold[2] == 3 or action == 'expire' then return answer(hold[2] == 3) end
if action == 'extend' then
if hold[2] == 1 and now_us + number * 1000 > hold[6] then
hold[6] = now_us + number * 1000
note_expiry(index_name, name, hold[6])
store()
end
return answer()
end
hold[4] = math.max(hold[4], number)
for i = head_length + 1, #hold do
local window = hold[i]
if hold[4] > window[4] then
charge(i - head_length, window, hold[4] - window[4])
window[4] = hold[4]
end
end
write_all()
if ARGV[4] == '1' then
if hold[2] == 1 then give_all_back(hold[4]) end
finish(3)
end
store()
return answer()
`,
  },
  /** Takes costs from counters of arrival times, each request all or nothing: the commonest requests, many at once. */
  takeArrivals: {
    digest: "8f208ecc48768c411aac472c6cea1b20854262dc",
    source: `local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = now_us / 1000
local late_us = ARGV[1] * 1000
if late_us > 0 and now_us > late_us then return { now_us, 1 } end
local floor = math.floor
local span = 9007199254740992
local passed = 0.75 * span
local whole_ms = floor(now_us / 1000)
local within_ms = floor(now_us % 1000 * 1048.576)
local at = whole_ms % 8589934592 * 1048576 + within_ms
local room = span - at
local renewal = 62914560000
local function read_wide(value)
local sign, ms, units = string.match(value, '^w(%-?)(%d+):(%d+)$')
if not sign then return nil end
local distance = (ms - whole_ms) * 1048576 + (units - within_ms)
return distance > 0 and distance or 0, sign == '-'
end
local function read_ahead(word)
local ms, units = string.match(word, '^(%d+):(%d+)$')
return ms and (ms - whole_ms) * 1048576 + (units - within_ms) or 0
end
local function instant_text(ahead)
local units = within_ms + ahead
local ms = floor(units / 1048576)
return string.format('%.0f:%.0f', whole_ms + ms, units - ms * 1048576)
end
local function arrival_text(ahead, debt)
local arrival = ahead < room and at + ahead or ahead - room
if not debt then return string.format('%.0f', arrival) end
return string.format('-%.0f', arrival == 0 and span or arrival)
end
local call, try, byte, keys = redis.call, redis.pcall, string.byte, KEYS
local minute = floor(at / renewal) * renewal
local next_minute = minute + renewal
local worth_text, worth, full, tolerance, furthest, life = {}, {}, {}, {}, {}, {}
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
local counters = #keys - marks
local values = call('MGET', unpack(keys))
local foreign, healed = 0, 0
local looked_at = now_us % counters + 1
if values[looked_at] and call('PTTL', keys[looked_at]) == -1 then
call('PEXPIRE', keys[looked_at], longest)
healed = 1
end
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
if absent > 0 then
local names = {}
for key = 1, counters do
if not values[key] and not (texts and texts[key]) then names[#names + 1] = keys[key] end
end
foreign = call('EXISTS', unpack(names))
end
local requests = ARGV[2] ~= '' and { byte(ARGV[2], 1, -1) }
local aheads = requests and {} or values
local froms, befores, misfits = {}, {}, {}
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
if try('INCRBY', keys[key], fresh - value) ~= fresh then call('SET', keys[key], fresh, 'PX', life[rate]) end
values[key] = fresh
aheads[replied + 1] = 0
else
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
`,
  },
  /** Takes costs from fixed and sliding windows, and from arrival times next to them, each request all or nothing: many at once. */
  takeCounts: {
    digest: "de828ddb6a6b517781f5f2aab3991c011468697d",
    source: `local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = now_us / 1000
local late_us = ARGV[1] * 1000
if late_us > 0 and now_us > late_us then return { now_us, 1 } end
local floor = math.floor
local span = 9007199254740992
local passed = 0.75 * span
local whole_ms = floor(now_us / 1000)
local within_ms = floor(now_us % 1000 * 1048.576)
local at = whole_ms % 8589934592 * 1048576 + within_ms
local room = span - at
local renewal = 62914560000
local function read_wide(value)
local sign, ms, units = string.match(value, '^w(%-?)(%d+):(%d+)$')
if not sign then return nil end
local distance = (ms - whole_ms) * 1048576 + (units - within_ms)
return distance > 0 and distance or 0, sign == '-'
end
local function read_ahead(word)
local ms, units = string.match(word, '^(%d+):(%d+)$')
return ms and (ms - whole_ms) * 1048576 + (units - within_ms) or 0
end
local function instant_text(ahead)
local units = within_ms + ahead
local ms = floor(units / 1048576)
return string.format('%.0f:%.0f', whole_ms + ms, units - ms * 1048576)
end
local function arrival_text(ahead, debt)
local arrival = ahead < room and at + ahead or ahead - room
if not debt then return string.format('%.0f', arrival) end
return string.format('-%.0f', arrival == 0 and span or arrival)
end
local call, keys, ceil, byte = redis.call, KEYS, math.ceil, string.byte
local pack, unpack_from = struct.pack, struct.unpack
local once_ms, slack_ms = 2592000000, 1000
local kinds = { byte(ARGV[3], 1, -1) }
local worth, most, full, furthest, per_ms, latest, life = {}, {}, {}, {}, {}, {}, {}
local longest = 0
for shape = 1, #kinds do
local first = 5 * shape - 1
local kind = kinds[shape] - 48
kinds[shape], worth[shape], life[shape] = kind, ARGV[first] + 0, ARGV[first + 4]
if life[shape] + 0 > longest then longest = life[shape] + 0 end
if kind == 1 then
full[shape], most[shape], furthest[shape] = ARGV[first + 1] + 0, ARGV[first + 2] + 0, ARGV[first + 3] + 0
else
local per = ARGV[first + 2] + 0
most[shape], per_ms[shape] = ARGV[first + 1] + 0, per
local ends = per > 0 and (floor(whole_ms / per) + 1) * per or ceil(now_ms) + once_ms
latest[shape] = kind == 4 and ends + per or ends
end
end
local values = call('MGET', unpack(keys))
local foreign, healed, absent = 0, 0, 0
local looked_at = now_us % #keys + 1
if values[looked_at] and call('PTTL', keys[looked_at]) == -1 then
call('PEXPIRE', keys[looked_at], longest)
healed = 1
end
local one, two, three, stored, shape_of, changed, dirty = {}, {}, {}, {}, {}, {}, {}
local function is_whole(number)
return number >= 0 and number <= span and number % 1 == 0
end
local function read(key, kind)
local value = values[key]
if not value then
one[key], two[key], three[key] = 0, kind ~= 1 and 0, kind ~= 1 and 0
absent = absent + 1
return
end
if kind == 3 then
if #value == 17 and byte(value) == 67 then
local _, ends, count = unpack_from('<Bdd', value)
if is_whole(ends) and is_whole(count) then
one[key], two[key], stored[key] = ends, count, ends
return
end
end
elseif kind == 4 then
if #value == 25 and byte(value) == 83 then
local _, idle, current, previous = unpack_from('<Bddd', value)
if is_whole(idle) and is_whole(current) and is_whole(previous) then
one[key], two[key], three[key], stored[key] = idle, current, previous, idle
return
end
end
else
local number = tonumber(value)
if number and number % 1 == 0 then
local ahead = ((number < 0 and -number or number) - at) % span
local is_passed = ahead > passed
one[key], two[key], three[key] = is_passed and 0 or ahead, not is_passed and number < 0, number >= 0 and number
return
end
local ahead, debt = read_wide(value)
if ahead then
one[key], two[key], three[key] = ahead, debt, false
return
end
end
foreign = foreign + 1
one[key], two[key], three[key] = 0, kind ~= 1 and 0, kind ~= 1 and 0
end
local function change(key, shape)
if not changed[key] then dirty[#dirty + 1] = key end
changed[key], shape_of[key] = true, shape
end
local requests = ARGV[2] ~= '' and { byte(ARGV[2], 1, -1) }
local reply, replied, position = {}, 0, 0
local last = requests and #requests or #keys
local request_shapes, request_keys = {}, {}
while position < last do
local count = 1
if requests then count = requests[position + 1] end
local fits = true
for i = 1, count do
local shape, key = 1, position + 1
if requests then shape, key = requests[position + 2 * i], requests[position + 2 * i + 1] end
request_shapes[i], request_keys[i] = shape, key
local kind = kinds[shape]
if not one[key] then read(key, kind) end
if kind == 3 then
if one[key] > latest[shape] then
one[key] = latest[shape]
change(key, shape)
end
if one[key] <= now_ms then two[key] = 0 end
if two[key] + worth[shape] > most[shape] then fits = false end
reply[replied + 1], reply[replied + 2] = one[key], two[key]
replied = replied + 2
elseif kind == 4 then
local idle, per = one[key], per_ms[shape]
if idle > latest[shape] then
idle = latest[shape]
one[key] = idle
change(key, shape)
end
if now_ms >= idle then
idle = latest[shape]
one[key], two[key], three[key] = idle, 0, 0
elseif now_ms >= idle - per then
idle = idle + per
one[key], two[key], three[key] = idle, 0, two[key]
end
local cost, capacity = worth[shape], most[shape]
if cost > capacity or three[key] * (idle - per - now_ms) + (two[key] + cost - capacity) * per > 0 then fits = false end
reply[replied + 1], reply[replied + 2], reply[replied + 3] = idle, two[key], three[key]
replied = replied + 3
else
local ahead, far = one[key], furthest[shape]
if ahead > far and not (two[key] and ahead <= 2 * far) then
ahead = full[shape]
one[key], two[key], three[key] = ahead, false, false
change(key, shape)
end
if ahead + worth[shape] > most[shape] then fits = false end
replied = replied + 1
reply[replied] = ahead
end
end
if fits then
for i = 1, count do
local shape, key = request_shapes[i], request_keys[i]
local kind = kinds[shape]
if kind == 1 then
one[key], two[key] = one[key] + worth[shape], false
else
if kind == 3 and (two[key] == 0 or per_ms[shape] == 0) then one[key] = latest[shape] end
two[key] = two[key] + worth[shape]
end
change(key, shape)
end
end
position = position + (requests and 1 + 2 * count or 1)
end
if absent > 0 then
local names = {}
for key = 1, #keys do
if not values[key] then names[#names + 1] = keys[key] end
end
foreign = foreign + call('EXISTS', unpack(names))
end
for i = 1, #dirty do
local key = dirty[i]
local shape = shape_of[key]
local kind = kinds[shape]
if kind == 1 then
local ahead, before = one[key], three[key]
local arrival = ahead < room and at + ahead or ahead - room
if two[key] then
call('SET', keys[key], arrival_text(ahead, true), 'PX', life[shape])
elseif not before or floor(before / renewal) ~= floor(arrival / renewal)
or redis.pcall('INCRBY', keys[key], arrival - before) ~= arrival then
call('SET', keys[key], arrival, 'PX', life[shape])
end
else
local text = kind == 3 and pack('<Bdd', 67, one[key], two[key]) or pack('<Bddd', 83, one[key], two[key], three[key])
if stored[key] == one[key] then
call('SET', keys[key], text, 'KEEPTTL')
else
call('SET', keys[key], text, 'PX', ceil(one[key] - now_ms) + slack_ms)
end
end
end
return { now_us, 0, foreign, healed, reply }
`,
  },
  /** Takes requests of any windows, each all or nothing. */
  take: {
    digest: "d2bfcd3cbf34d05e37cb6c06d146518c00a9a6c2",
    source: `local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = now_us / 1000
local late_us = ARGV[1] * 1000
if late_us > 0 and now_us > late_us then return { now_us, 1 } end
local floor = math.floor
local span = 9007199254740992
local passed = 0.75 * span
local whole_ms = floor(now_us / 1000)
local within_ms = floor(now_us % 1000 * 1048.576)
local at = whole_ms % 8589934592 * 1048576 + within_ms
local room = span - at
local renewal = 62914560000
local function read_wide(value)
local sign, ms, units = string.match(value, '^w(%-?)(%d+):(%d+)$')
if not sign then return nil end
local distance = (ms - whole_ms) * 1048576 + (units - within_ms)
return distance > 0 and distance or 0, sign == '-'
end
local function read_ahead(word)
local ms, units = string.match(word, '^(%d+):(%d+)$')
return ms and (ms - whole_ms) * 1048576 + (units - within_ms) or 0
end
local function instant_text(ahead)
local units = within_ms + ahead
local ms = floor(units / 1048576)
return string.format('%.0f:%.0f', whole_ms + ms, units - ms * 1048576)
end
local function arrival_text(ahead, debt)
local arrival = ahead < room and at + ahead or ahead - room
if not debt then return string.format('%.0f', arrival) end
return string.format('-%.0f', arrival == 0 and span or arrival)
end
local pack, unpack_from, byte, format = struct.pack, struct.unpack, string.byte, string.format
local ceil, call = math.ceil, redis.call
local head_form, window_form = '<HBHHH', '<BHBHHHddddddd'
local window_bytes = 66
local once_ms = 2592000000
local slack_ms = 1000
local exact_entries = 256
local values = #KEYS > 0 and call('MGET', unpack(KEYS)) or {}
local counters, needed_ms, foreign = {}, {}, 0
local distinct = {}
local function read_arrival(value)
local counter = { ahead = 0 }
local number = value and tonumber(value)
if number and number % 1 == 0 then
local distance = ((number < 0 and -number or number) - at) % span
if distance <= passed then
counter.ahead = distance
counter.debt = number < 0
end
if number >= 0 then counter.stored = number end
elseif value then
local ahead, debt = read_wide(value)
if ahead then
counter.ahead, counter.debt = ahead, debt
else
foreign = foreign + 1
end
end
return counter
end
local function is_whole(number)
return number >= 0 and number <= span and number % 1 == 0
end
local function read_packed(value, tag, form, length)
if not value then return 0, 0, 0 end
if #value == length and byte(value) == tag then
local _, one, two, three = unpack_from(form, value)
if is_whole(one) and is_whole(two) and (length == 17 or is_whole(three)) then return one, two, three end
end
foreign = foreign + 1
return 0, 0, 0
end
local function read_log(value)
local counter = { entries = {}, first = 1, used = 0 }
if not value then return counter end
if byte(value) ~= 76 or #value % 16 ~= 1 then
foreign = foreign + 1
return counter
end
local entries = counter.entries
local before = 0
for position = 2, #value, 16 do
local time, cost = unpack_from('<dd', value, position)
counter.used = counter.used + cost
if not (time >= before and time <= span and is_whole(cost) and counter.used <= span) then
foreign = foreign + 1
return { entries = {}, first = 1, used = 0 }
end
before = time
if time > now_ms then time, counter.misfit = now_ms, true end
entries[#entries + 1] = time
entries[#entries + 1] = cost
end
return counter
end
local function read_record(value)
local updated, denied = string.match(value or '', '^(%d+) (%d+)$')
updated, denied = tonumber(updated), tonumber(denied)
if updated and updated <= span and denied <= span then return { updated = updated, denied = denied } end
if value then foreign = foreign + 1 end
return { updated = 0, denied = 0 }
end
local function settle(counter, per_ms)
local entries, first = counter.entries, counter.first
while first < #entries and now_ms - entries[first] >= per_ms do
counter.used = counter.used - entries[first + 1]
first = first + 2
end
counter.first = first
end
local function add_entry(counter, cost, per_ms)
local entries = counter.entries
counter.used = counter.used + cost
if #entries > counter.first and entries[#entries - 1] == now_ms then
entries[#entries] = entries[#entries] + cost
return
end
entries[#entries + 1] = now_ms
entries[#entries + 1] = cost
if (#entries - counter.first + 1) / 2 <= exact_entries then return end
local slot_ms, merged, slot = per_ms / exact_entries, {}, nil
for i = counter.first, #entries, 2 do
local slot_of_entry = floor(entries[i] / slot_ms)
if slot_of_entry == slot then
merged[#merged - 1] = entries[i]
merged[#merged] = merged[#merged] + entries[i + 1]
else
merged[#merged + 1] = entries[i]
merged[#merged + 1] = entries[i + 1]
slot = slot_of_entry
end
end
counter.entries, counter.first = merged, 1
end
local function aligned_end(per_ms)
return (floor(floor(now_ms) / per_ms) + 1) * per_ms
end
local function counter_of(kind, key, a, c, life_ms)
local counter = counters[key]
if not counter then
local value = values[key]
if kind <= 2 then
counter = read_arrival(value)
elseif kind == 3 or kind == 7 then
local ends, count = read_packed(value, 67, '<Bdd', 17)
counter = { ends = ends, count = count }
elseif kind == 4 then
local idle, current, previous = read_packed(value, 83, '<Bddd', 25)
counter = { idle = idle, current = current, previous = previous }
elseif kind == 5 then
counter = read_log(value)
else
counter = read_record(value)
end
counters[key] = counter
needed_ms[key] = kind == 3 and a < 0 and 2 * once_ms or life_ms
end
if kind == 3 or kind == 7 then
local latest = a > 0 and aligned_end(a) or a == 0 and ceil(now_ms) + once_ms or c
if counter.ends > latest then counter.ends, counter.misfit = latest, true end
if counter.ends <= now_ms then counter.count = 0 end
elseif kind == 4 then
local latest = aligned_end(a) + a
if counter.idle > latest then counter.idle, counter.misfit = latest, true end
if now_ms >= counter.idle then
counter.idle, counter.current, counter.previous = aligned_end(a) + a, 0, 0
elseif now_ms >= counter.idle - a then
counter.idle, counter.current, counter.previous = counter.idle + a, 0, counter.current
end
elseif kind == 5 then
settle(counter, a)
end
return counter
end
local function clamp(counter, full, furthest)
if counter.ahead > furthest and not (counter.debt and counter.ahead <= 2 * furthest) then
counter.ahead, counter.debt, counter.stored, counter.misfit = full, nil, nil, true
end
end
local function next_freed(counter, capacity, per_ms)
local entries, first, freed = counter.entries, counter.first, counter.first
if freed > #entries then return 0 end
local used = counter.used - entries[freed + 1]
while used >= capacity and freed + 2 < #entries do
freed = freed + 2
used = used - entries[freed + 1]
end
local dated_ms = entries[freed]
if (#entries - first + 1) / 2 >= exact_entries and entries[#entries - 1] ~= now_ms then
local slot_ms = per_ms / exact_entries
local slot = floor(dated_ms / slot_ms)
while freed + 2 < #entries and floor(entries[freed + 2] / slot_ms) == slot do freed = freed + 2 end
dated_ms = freed + 1 == #entries and floor(now_ms / slot_ms) == slot and now_ms or entries[freed]
end
return ceil(per_ms - (now_ms - dated_ms))
end
local function look(kind, counter, cost, capacity, a, b, c)
if kind <= 2 then
clamp(counter, capacity, c)
return counter.ahead + a <= b, counter.ahead, 0, 0, 0
elseif kind == 3 then
return counter.count + cost <= capacity, counter.ends, counter.count, 0, 0
elseif kind == 4 then
local until_end = counter.idle - a - now_ms
local fits = cost <= capacity and counter.previous * until_end + (counter.current + cost - capacity) * a <= 0
return fits, counter.idle, counter.current, counter.previous, 0
elseif kind == 6 then
return true, counter.updated, counter.denied, 0, 0
elseif kind == 7 then
return distinct.look(counter, capacity, b, c)
end
local entries, used, wait_ms = counter.entries, counter.used, 0
if used + cost <= capacity or cost > capacity then
wait_ms = next_freed(counter, capacity, a)
else
for i = counter.first, #entries, 2 do
if used + cost <= capacity then break end
used = used - entries[i + 1]
wait_ms = ceil(a - (now_ms - entries[i]))
end
end
local reset_ms = #entries > counter.first and ceil(a - (now_ms - entries[#entries - 1])) or 0
return counter.used + cost <= capacity, counter.used, wait_ms, reset_ms, (#entries - counter.first + 1) / 2
end
local function end_of_count(counter, a, b, c)
if a == 0 then return ceil(now_ms) + once_ms end
if counter.count > 0 then return counter.ends end
if a > 0 then return aligned_end(a) end
return now_ms < b and b or c
end
local function within_bounds(kind, a, c, began_ms)
return kind ~= 3 or a >= 0 or (now_ms >= began_ms and now_ms < c)
end
local function take(kind, counter, cost, capacity, a, b, c)
if kind <= 2 then
local after = counter.ahead + a
if after <= b then
counter.ahead, counter.debt = after, nil
else
local bounded = math.min(after, b + capacity)
counter.ahead, counter.debt, counter.stored = math.max(counter.ahead, bounded), true, nil
end
elseif kind == 3 then
counter.ends = end_of_count(counter, a, b, c)
counter.count = math.max(counter.count, math.min(counter.count + cost, 2 * capacity))
elseif kind == 4 then
counter.current = math.max(counter.current, math.min(counter.current + cost, 2 * capacity))
elseif kind == 7 then
distinct.take(counter, a, b, c)
else
local bounded = math.min(cost, 2 * capacity - counter.used)
if bounded > 0 then add_entry(counter, bounded, a) end
end
end
local function credit(kind, counter, cost, a, b)
if kind <= 2 then
if counter.ahead == 0 then return nil end
local given = math.min(a, counter.ahead)
counter.ahead = counter.ahead - given
if counter.ahead <= b then counter.debt = nil end
return given
elseif kind == 3 then
if counter.count == 0 then return nil end
counter.count = math.max(counter.count - cost, 0)
elseif kind == 7 then
return nil
elseif kind == 4 then
if counter.current + counter.previous == 0 then return nil end
local rest = cost - math.min(cost, counter.current)
if rest == 0 then
counter.current = counter.current - cost
return 0
end
local until_end = counter.idle - a - now_ms
local units = floor(rest * a / until_end)
if units * until_end > rest * a then units = units - 1 end
counter.current, counter.previous = 0, math.max(counter.previous - units, 0)
else
local entries = counter.entries
if #entries < counter.first then return nil end
while cost > 0 and #entries > counter.first do
local removed = math.min(entries[#entries], cost)
cost, counter.used = cost - removed, counter.used - removed
entries[#entries] = entries[#entries] - removed
if entries[#entries] == 0 then entries[#entries], entries[#entries - 1] = nil, nil end
end
end
return 0
end
local function is_empty(kind, counter)
if kind <= 2 then return counter.ahead == 0 end
if kind == 3 then return counter.count == 0 end
if kind == 4 then return counter.current + counter.previous == 0 end
return counter.used == 0
end
local function life_until(instant_ms)
return ceil(instant_ms - now_ms) + slack_ms
end
local function log_text(counter)
local parts, entries = { 'L' }, counter.entries
for i = counter.first, #entries, 2 do parts[#parts + 1] = pack('<dd', entries[i], entries[i + 1]) end
return table.concat(parts)
end
local function write_arrival(name, counter, life_ms)
local arrival = counter.ahead < room and at + counter.ahead or counter.ahead - room
local before = counter.stored
if counter.debt then
call('SET', name, arrival_text(counter.ahead, true), 'PX', life_ms)
elseif not before or floor(before / renewal) ~= floor(arrival / renewal)
or type(redis.pcall('INCRBY', name, arrival - before)) ~= 'number' then
call('SET', name, arrival, 'PX', life_ms)
end
end
local function write(kind, name, counter, a, life_ms)
if kind == 1 then
write_arrival(name, counter, life_ms)
elseif kind == 2 then
call('SET', name, (counter.debt and 'w-' or 'w') .. instant_text(counter.ahead), 'PX', life_ms)
elseif kind == 3 or kind == 7 then
call('SET', name, pack('<Bdd', 67, counter.ends, counter.count), 'PX', life_until(counter.ends))
elseif kind == 4 then
call('SET', name, pack('<Bddd', 83, counter.idle, counter.current, counter.previous), 'PX', life_until(counter.idle))
elseif kind == 6 then
call('SET', name, format('%.0f %.0f', counter.updated, counter.denied), 'PX', ceil(life_ms))
else
call('SET', name, log_text(counter), 'PX', life_until(now_ms + a))
end
end
local dirty, kind_of, a_of, life_of = {}, {}, {}, {}
local function touch(key, kind, a, life_ms)
if not kind_of[key] then dirty[#dirty + 1] = key end
kind_of[key], a_of[key], life_of[key] = kind, a, life_ms
end
local function write_all()
for i = 1, #dirty do
local key = dirty[i]
write(kind_of[key], KEYS[key], counters[key], a_of[key], life_of[key])
end
end
local function heal()
if #KEYS == 0 then return 0 end
local looked_at = now_us % #KEYS + 1
if not values[looked_at] or call('PTTL', KEYS[looked_at]) ~= -1 then return 0 end
call('PEXPIRE', KEYS[looked_at], needed_ms[looked_at] or once_ms)
return 1
end
local function count_foreign()
local absent = {}
for key = 1, #KEYS do
if not values[key] then absent[#absent + 1] = KEYS[key] end
end
if #absent == 0 then return foreign end
return foreign + call('EXISTS', unpack(absent))
end
local exact_values, sketch_bytes = 1536, 12304
local empty_sketch_head = 'HYLL\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\128'
local raised = {}
local function has_value(text, value)
local from = 2
while true do
local found = string.find(text, value, from, true)
if not found then return false end
if found % 8 == 2 then return true end
from = found + 1
end
end
local function is_sketch(text)
return #text == sketch_bytes and string.sub(text, 1, 5) == 'HYLL\\0'
end
local function is_new(counter, place, c)
if counter.count == 0 then return true end
local key = floor(c / 65536)
local text = values[key]
if text and byte(text) == 86 and #text % 8 == 1 then return not has_value(text, ARGV[c % 65536]) end
if text and is_sketch(text) then
local register, rank = floor(place / 64), place % 64
local bits = register * 6
local first, second = byte(text, 17 + floor(bits / 8), 18 + floor(bits / 8))
local held = floor((first + 256 * (second or 0)) / 2 ^ (bits % 8)) % 64
return held < rank and (raised[key * 16384 + register] or 0) < rank
end
if text then foreign = foreign + 1 end
counter.count = 0
return true
end
local function blur(name, text, life_ms)
call('SET', name, empty_sketch_head .. string.rep('\\0', sketch_bytes - 16), 'PX', life_ms)
for from = 2, #text, 800 do
local some = {}
for position = from, math.min(from + 792, #text), 8 do some[#some + 1] = string.sub(text, position, position + 7) end
call('PFADD', name, unpack(some))
end
end
local function add_value(counter, place, c)
local key, value = floor(c / 65536), ARGV[c % 65536]
local name, life_ms = KEYS[key], life_until(counter.ends)
if counter.count == 0 then
values[key] = 'V' .. value
call('SET', name, values[key], 'PX', life_ms)
counter.count = 1
elseif byte(values[key]) == 86 and #values[key] < 8 * exact_values then
values[key] = values[key] .. value
call('APPEND', name, value)
counter.count = counter.count + 1
else
local is_exact = byte(values[key]) == 86
if is_exact then blur(name, values[key], life_ms) end
call('PFADD', name, value)
if is_exact then values[key] = call('GET', name) end
raised[key * 16384 + floor(place / 64)] = place % 64
counter.count = math.max(counter.count, floor(call('PFCOUNT', name) / 1.025))
end
end
function distinct.look(counter, capacity, place, c)
local new = is_new(counter, place, c)
return not new or counter.count < capacity, counter.ends, counter.count, new and 1 or 0, 0
end
function distinct.take(counter, per_ms, place, c)
if not is_new(counter, place, c) then return end
if counter.count == 0 then counter.ends = aligned_end(per_ms) end
add_value(counter, place, c)
end
local longest_block_ms = 31622400000
local latest_moment_us = 9007199254740992
local function read_block(text, block_for_ms)
local until_us, length_ms = string.match(text or '', '^(%d+):(%d+)$')
if not until_us then until_us, length_ms = string.match(text or '', '^%d+$'), block_for_ms end
until_us, length_ms = tonumber(until_us or 0), tonumber(length_ms)
if until_us <= now_us or until_us > latest_moment_us then return 0, 0, false end
if length_ms < 1 or length_ms > longest_block_ms then return 0, 0, false end
local latest_us = now_us + length_ms * 1000
if until_us > latest_us then return latest_us, length_ms, true end
return until_us, length_ms, false
end
local function block_text(until_us, length_ms)
return string.format('%.0f:%.0f', until_us, length_ms)
end
local function blocked_for(text, block_for_ms)
local until_us, length_ms, brought_back = read_block(text, block_for_ms)
return math.ceil(math.max(until_us - now_us, 0) / 1000), brought_back and length_ms
end
local remember_hold_ms = 600000
local most_ordered = 500
local new_holds = {}
local function note_hold_later(index_name, name, expires_us, windows, life_ms)
new_holds[#new_holds + 1] = { index_name, name, expires_us, windows, life_ms }
end
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
local plan, position = ARGV[2], 1
local reply = { now_us, 0, 0, 0 }
local sets = {}
local function set_later(key, text, life_ms)
local existed = values[key]
values[key] = text
sets[#sets + 1] = { KEYS[key], text, life_ms, existed }
end
local function block_later(key, length_ms)
set_later(key, block_text(now_us + length_ms * 1000, length_ms), length_ms)
end
local function write_texts()
for i = 1, #sets do
local name, text, life_ms, existed = unpack(sets[i])
if existed and call('PTTL', name) > life_ms then
call('SET', name, text, 'KEEPTTL')
else
call('SET', name, text, 'PX', ceil(life_ms))
end
end
end
local function remembered_answer(value)
local readable, record = pcall(cmsgpack.unpack, value)
if not readable or type(record) ~= 'table' or (#record - 5) % 5 ~= 0 then return nil end
for i = 1, #record do
if type(record[i]) ~= ((i == 2 or i == 5) and 'string' or 'number') then return nil end
end
return record
end
local function note_taken(key, mark_key, kind, counter, cost, a, b, receipt, life_ms)
local mark = values[mark_key]
local beginning, given
if mark then beginning, given = string.match(mark, '^([%w_-]+) (%d+)$') end
if not beginning then beginning, given = receipt, '0' end
set_later(mark_key, beginning .. ' ' .. given, life_ms)
local word = kind <= 2 and instant_text(counter.ahead) or kind == 3 and counter.ends or counter.idle or 0
return { KEYS[key], KEYS[mark_key], kind, cost, a, b, now_ms, word, beginning, tonumber(given) }
end
local function note_held(taken, written, capacity, c, life_ms)
local limit, per_ms, noted_in = string.match(written, '^(%S+) (%S+) (.*)$')
taken[11], taken[12], taken[13] = capacity, c, life_ms
taken[14], taken[15], taken[16] = tonumber(limit) or 0, tonumber(per_ms) or 0, noted_in or ''
end
local function never_fits(kind, cost, capacity, a)
if kind <= 2 then return a >= 1e300 end
return kind ~= 7 and cost > capacity or kind == 3 and a == 0
end
local kinds, groups, charging, keys, block_keys, mark_keys = {}, {}, {}, {}, {}, {}
local costs, capacities, as, bs, cs, block_fors, lives, curable, refusing = {}, {}, {}, {}, {}, {}, {}, {}, {}
local function fits_before(step, count)
for window = step - count, step - 1 do
if refusing[window] then return false end
end
return true
end
local function note_decided(record, step, denied)
if denied and fits_before(step, as[step]) then return false end
record.updated = now_us
record.denied = denied and math.min(record.denied + costs[step], span) or 0
return true
end
while position <= #plan do
local steps, flags, id_key, receipt_key, own
steps, flags, id_key, receipt_key, own, position = unpack_from(head_form, plan, position)
local known = id_key > 0 and values[id_key]
local remembered
if known then
local record = remembered_answer(known)
if not record then
foreign = foreign + 1
elseif record[1] > now_us then
remembered = record
end
end
local replayed = remembered and remembered[2] == ARGV[own]
if remembered and not (replayed and #remembered ~= 5 + 5 * steps) then
if replayed then
for i = 3, #remembered do reply[#reply + 1] = remembered[i] end
else
reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = 3, now_us, ''
for _ = 1, 5 * steps do reply[#reply + 1] = 0 end
end
position = position + steps * window_bytes
else
local start = #reply
reply[start + 1], reply[start + 2], reply[start + 3] = 0, now_us, ''
local last = start + 3
local denied, refused, bounded = false, nil, true
for step = 1, steps do
local kind, group, charges, key, block_key, mark_key, cost, capacity, a, b, c, block_for_ms, life_ms, next_step =
unpack_from(window_form, plan, position)
position = next_step
if not within_bounds(kind, a, c, life_ms) then bounded = false end
local fits, one, two, three, four = look(kind, counter_of(kind, key, a, c, life_ms), cost, capacity, a, b, c)
local blocked_ms, brought_back_ms = 0, false
if block_key > 0 then blocked_ms, brought_back_ms = blocked_for(values[block_key], block_for_ms) end
if brought_back_ms then block_later(block_key, brought_back_ms) end
refusing[step] = not fits or blocked_ms > 0
if refusing[step] then
if group == 0 then
denied = true
else
refused = refused or {}
refused[group] = true
end
end
reply[last + 1], reply[last + 2], reply[last + 3], reply[last + 4], reply[last + 5] = one, two, three, four, blocked_ms
last = last + 5
kinds[step], groups[step], charging[step], keys[step], block_keys[step] = kind, group, charges, key, block_key
mark_keys[step], costs[step], capacities[step], block_fors[step] = mark_key, cost, capacity, block_for_ms
as[step], bs[step], cs[step], lives[step] = a, b, c, life_ms
curable[step] = not fits and blocked_ms == 0 and block_for_ms > 0 and not never_fits(kind, cost, capacity, a)
end
if not bounded then
reply[start + 1] = 4
else
if not denied then reply[start + 1] = 1 end
if replayed then reply[start + 1], reply[start + 3] = 2, remembered[5] end
local receipt = not replayed and flags >= 2 and ARGV[own + 2]
local taken = receipt and {}
for step = 1, steps do
local kind, group, key, a = kinds[step], groups[step], keys[step], as[step]
if counters[key].misfit then touch(key, kind, a, lives[step]) end
if replayed then
elseif kind == 6 then
local record, refused_here = counters[key], denied or refused and refused[group] or false
if (group == 0 or not denied) and note_decided(record, step, refused_here) then
touch(key, kind, a, lives[step])
end
local place = start + 3 + 5 * (step - 1)
reply[place + 1], reply[place + 2] = record.updated, record.denied
elseif denied or refused and refused[group] then
if curable[step] and (group == 0 or not denied) then block_later(block_keys[step], block_fors[step]) end
elseif charging[step] == 1 then
local counter, cost, c = counters[key], costs[step], cs[step]
take(kind, counter, cost, capacities[step], a, bs[step], c)
touch(key, kind, a, lives[step])
if taken and kind ~= 7 then
local noted = note_taken(key, mark_keys[step], kind, counter, cost, a, bs[step], receipt, ARGV[own + 3] + 0)
taken[#taken + 1] = noted
if flags >= 4 then note_held(noted, ARGV[own + 5 + step], capacities[step], c, lives[step]) end
end
end
end
if taken and #taken > 0 then
local id_name = id_key > 0 and KEYS[id_key] or ''
if flags >= 4 then
local hold_ms = ARGV[own + 4] + 0
local expires_us = now_us + hold_ms * 1000
local hold = { id_name, 1, costs[1], 0, 0, expires_us, 0, unpack(taken) }
set_later(receipt_key, cmsgpack.pack(hold), hold_ms + remember_hold_ms + slack_ms)
note_hold_later(ARGV[own + 5], receipt, expires_us, taken, ARGV[own + 3] + 0)
else
set_later(receipt_key, cmsgpack.pack({ id_name, unpack(taken) }), ARGV[own + 3] + 0)
end
reply[start + 3] = receipt
end
if id_key > 0 and not denied and not replayed then
local answer = { now_us + ARGV[own + 1] * 1000, ARGV[own], 2 }
for i = start + 2, #reply do answer[#answer + 1] = reply[i] end
set_later(id_key, cmsgpack.pack(answer), ARGV[own + 1] + 0)
end
end
end
end
reply[3] = count_foreign()
write_all()
write_texts()
write_holds()
reply[4] = heal()
return reply
`,
  },
};
