--- Takes requests of any windows, each of them all or nothing.
---
--- KEYS: counters, blocks, marks, request ids and receipts, each of them once, all of one slot
--- ARGV[1]: deadline in whole milliseconds since 1970 by this server's clock; 0 for none
--- ARGV[2]: the plan, see windows.lua
--- ARGV[3]: arguments of requests with an id or a receipt, four each: fingerprint, life of the id in ms, name of the
---          receipt, life of the receipt in ms
--- returns: { now_us, 1 } when late, else { now_us, 0, foreign, healed, request… }, and per request: answer, now_us,
---          receipt, then per window five numbers: its state in four, and for how many ms it is blocked. Answers: 0 denied, 1 taken,
---          2 taken before, 3 the id belongs to another request, 4 the calendar's bounds do not hold at this server's time.
--- include: server-time, refuse-when-late, arrival-units, windows

local plan, position = ARGV[2], 1
local reply = { now_us, 0, 0, 0 }
local sets = {}

-- Text keys of this call as they will be; sets go out after everything is decided.
local function set_later(key, text, life_ms)
  local existed = values[key]
  values[key] = text
  sets[#sets + 1] = { KEYS[key], text, life_ms, existed }
end

-- What is there already keeps its end, if that is later.
local function write_texts()
  for i = 1, #sets do
    local name, text, life_ms, existed = unpack(sets[i])
    if existed and call('PTTL', name) > life_ms then
      call('SET', name, text, 'KEEPTTL')
    else
      call('SET', name, text, 'PX', format('%.0f', life_ms))
    end
  end
end

-- An answer that was given before: until when it is, fingerprint, then what is replied. Nil for what is none of ours.
local function remembered_answer(value)
  local readable, record = pcall(cmsgpack.unpack, value)
  if not readable or type(record) ~= 'table' or (#record - 5) % 5 ~= 0 then return nil end
  for i = 1, #record do
    if type(record[i]) ~= ((i == 2 or i == 5) and 'string' or 'number') then return nil end
  end
  return record
end

-- What a receipt needs to know of a window, and the mark by which it finds out what happened since.
local function note_taken(key, mark_key, kind, counter, cost, capacity, a, b, receipt, life_ms)
  local mark = values[mark_key]
  local beginning, given
  if mark then beginning, given = string.match(mark, '^([%w_-]+) (%d+)$') end
  if not beginning then beginning, given = receipt, '0' end
  set_later(mark_key, beginning .. ' ' .. given, life_ms)
  local word = kind <= 2 and ((kind == 2 and at_wide or at) + counter.ahead) or kind == 3 and counter.ends or counter.idle or 0
  return { KEYS[key], KEYS[mark_key], kind, cost, a, b, now_ms, word, beginning, tonumber(given), life_ms }
end

while position <= #plan do
  local steps, flags, id_key, receipt_key, own
  steps, flags, id_key, receipt_key, own, position = unpack_from(head_form, plan, position)
  local first_step = position
  local known = id_key > 0 and values[id_key]
  local remembered
  if known then
    local record = remembered_answer(known)
    if not record then
      foreign = foreign + 1
    elseif record[1] > now_us and (record[2] ~= ARGV[own] or #record == 5 + 5 * steps) then
      remembered = record
    end
  end
  if remembered then
    if remembered[2] == ARGV[own] then
      for i = 3, #remembered do reply[#reply + 1] = remembered[i] end
    else
      reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = 3, now_us, ''
      for _ = 1, 5 * steps do reply[#reply + 1] = 0 end
    end
    position = position + steps * window_bytes
  else
    local start = #reply
    reply[start + 1], reply[start + 2], reply[start + 3] = 0, now_us, ''
    local refused, bounded = {}, true
    for _ = 1, steps do
      local kind, group, _, key, block_key, _, cost, capacity, a, b, c, block_for_ms, life_ms, next_step =
        unpack_from(window_form, plan, position)
      position = next_step
      if not within_bounds(kind, a, c, life_ms) then bounded = false end
      local fits, one, two, three, four = look(kind, counter_of(kind, key, a, c), cost, capacity, a, b)
      local blocked_ms = blocked_for(block_key, block_for_ms)
      if not fits or blocked_ms > 0 then refused[group] = true end
      local last = #reply
      reply[last + 1], reply[last + 2], reply[last + 3], reply[last + 4] = one, two, three, four
      reply[last + 5] = blocked_ms
    end
    if not bounded then
      reply[start + 1] = 4
    else
      if not refused[0] then reply[start + 1] = 1 end
      local receipt = flags >= 2 and ARGV[own + 2]
      local record = receipt and { id_key > 0 and KEYS[id_key] or '' }
      local reread = first_step
      for step = 1, steps do
        local kind, group, charges, key, block_key, mark_key, cost, capacity, a, b, c, block_for_ms, life_ms, next_step =
          unpack_from(window_form, plan, reread)
        reread = next_step
        if refused[0] or refused[group] then
          -- A denial that waiting would cure begins a block; under a denial of what is enforced, shadow groups see nothing.
          if block_key > 0 and (group == 0 or not refused[0]) and reply[start + 5 * step + 3] == 0 then
            local counter = counter_of(kind, key, a, c)
            local fits = look(kind, counter, cost, capacity, a, b)
            local never = kind <= 2 and a >= span or kind > 2 and (cost > capacity or kind == 3 and a == 0)
            if not fits and not never then set_later(block_key, format('%.0f', now_us + block_for_ms * 1000), block_for_ms) end
          end
        elseif charges == 1 then
          local counter = counter_of(kind, key, a, c)
          take(kind, counter, cost, capacity, a, b, c)
          touch(key, kind, a, c, life_ms)
          if record then
            record[#record + 1] = note_taken(key, mark_key, kind, counter, cost, capacity, a, b, receipt, ARGV[own + 3] + 0)
          end
        end
      end
      if record and #record > 1 then
        set_later(receipt_key, cmsgpack.pack(record), ARGV[own + 3] + 0)
        reply[start + 3] = receipt
      end
      if id_key > 0 and not refused[0] then
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
reply[4] = heal()
return reply
