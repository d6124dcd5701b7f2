--- Takes requests of any windows, each all or nothing.
---
--- KEYS: counters, their distinct values, records, blocks, marks, request ids and receipts, each once, all of one slot
--- ARGV[1]: deadline in whole milliseconds since 1970 by this server's clock; 0 for none
--- ARGV[2]: the plan, see windows.lua
--- ARGV[3]: arguments of requests with an id or a receipt, four each: fingerprint, life of the id in ms, name of the
---          receipt, life of the receipt in ms. Of a hold, whose name is the receipt's, two more: for how many ms it is
---          held, and the lane's index of holds; and one for each window: limit, length in ms, and where its holds are
---          noted, if it is counted in time. Also the values that are counted, eight bytes each
--- returns: { now_us, 1 } when late, else { now_us, 0, foreign, healed, request… }, and per request: answer, now_us,
---          receipt, then per window five numbers: its state in four, and for how many ms it is blocked. Windows are
---          described as they stood before, records as they stand after. Answers: 0 denied, 1 taken, 2 taken before,
---          3 the id belongs to another request, 4 the calendar's bounds do not hold at this server's time.
--- include: server-time, refuse-when-late, arrival-units, windows, distinct, blocks, noting-holds

local plan, position = ARGV[2], 1
local reply = { now_us, 0, 0, 0 }
local sets = {}

-- Text keys of this call as they will be; they are written after everything is decided.
local function set_later(key, text, life_ms)
  local existed = values[key]
  values[key] = text
  sets[#sets + 1] = { KEYS[key], text, life_ms, existed }
end

local function block_later(key, length_ms)
  set_later(key, block_text(now_us + length_ms * 1000, length_ms), length_ms)
end

-- An existing key keeps its expiry if that is later.
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

-- An answer given before: when it expires, fingerprint, then the reply. Nil if it is not ours.
local function remembered_answer(value)
  local readable, record = pcall(cmsgpack.unpack, value)
  if not readable or type(record) ~= 'table' or (#record - 5) % 5 ~= 0 then return nil end
  for i = 1, #record do
    if type(record[i]) ~= ((i == 2 or i == 5) and 'string' or 'number') then return nil end
  end
  return record
end

-- What a receipt needs to know of a window, and the mark that shows what happened since.
local function note_taken(key, mark_key, kind, counter, cost, a, b, receipt, life_ms)
  local mark = values[mark_key]
  local beginning, given
  if mark then beginning, given = string.match(mark, '^([%w_-]+) (%d+)$') end
  if not beginning then beginning, given = receipt, '0' end
  set_later(mark_key, beginning .. ' ' .. given, life_ms)
  local word = kind <= 2 and instant_text(counter.ahead) or kind == 3 and counter.ends or counter.idle or 0
  return { KEYS[key], KEYS[mark_key], kind, cost, a, b, now_ms, word, beginning, tonumber(given) }
end

-- What settling a hold needs to know of a window besides, see hold-record.lua.
local function note_held(taken, written, capacity, c, life_ms)
  local limit, per_ms, noted_in = string.match(written, '^(%S+) (%S+) (.*)$')
  taken[11], taken[12], taken[13] = capacity, c, life_ms
  taken[14], taken[15], taken[16] = tonumber(limit) or 0, tonumber(per_ms) or 0, noted_in or ''
end

-- Waiting does not help: the cost is more than the window ever holds, or more than is left of a one-off quota.
local function never_fits(kind, cost, capacity, a)
  if kind <= 2 then return a >= 1e300 end
  return kind ~= 7 and cost > capacity or kind == 3 and a == 0
end

-- The windows of the current request, in lists that are reused for the next one.
local kinds, groups, charging, keys, block_keys, mark_keys = {}, {}, {}, {}, {}, {}
local costs, capacities, as, bs, cs, block_fors, lives, curable, refusing = {}, {}, {}, {}, {}, {}, {}, {}, {}

-- Whether none of the windows before a record, which are those of its limit, refused.
local function fits_before(step, count)
  for window = step - count, step - 1 do
    if refusing[window] then return false end
  end
  return true
end

-- An allowance resets the denials in a row. A denial counts for the limits that deny, and not for the others.
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
      -- A denial that waiting would cure begins a block, unless one lasts or the limit begins none.
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
          -- It was taken before, by other windows: today's are only examined.
        elseif kind == 6 then
          -- Under an enforced denial, shadow groups see nothing.
          local record, refused_here = counters[key], denied or refused and refused[group] or false
          if (group == 0 or not denied) and note_decided(record, step, refused_here) then
            touch(key, kind, a, lives[step])
          end
          local place = start + 3 + 5 * (step - 1)
          reply[place + 1], reply[place + 2] = record.updated, record.denied
        elseif denied or refused and refused[group] then
          -- Under an enforced denial, shadow groups see nothing.
          if curable[step] and (group == 0 or not denied) then block_later(block_keys[step], block_fors[step]) end
        elseif charging[step] == 1 then
          local counter, cost, c = counters[key], costs[step], cs[step]
          take(kind, counter, cost, capacities[step], a, bs[step], c)
          touch(key, kind, a, lives[step])
          -- Nothing takes a value back.
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
