--- Grants leases: takes up to what is wanted, to be spent on another node, and settles earlier ones.
---
--- KEYS: counters, their distinct values, ledgers, blocks, and marks of counters that get something back, each once, all of one slot
--- ARGV[1]: deadline in whole milliseconds since 1970 by this server's clock; 0 for none
--- ARGV[2]: the asks, in bytes: each a head, then its limits, each with its windows.
---          head    limits, whether they may be leased, want, hold_ms, and of earlier grants: epoch, spent, kept, returned
---          limit   windows, key of the ledger, allowance
---          window  kind, whether it charges, keys of the counter, its block and its receipts' mark, limit, the most that
---                  it holds in whole costs, capacity, a, b, c, block_for_ms, life_ms: as in windows.lua, but for arrivals
---                  a is per_ms, and what a cost is worth is worked out here
--- ARGV[3]: the values that are counted, eight bytes each
--- returns: { now_us, 1 } when late, else { now_us, 0, foreign, healed, ask… }, and per ask: 1, or 4 if a calendar's
---          bounds do not hold at this server's time and nothing was done; the units granted, their epoch's end in ms, the units
---          unspent of the first limit, how many kept units were never granted; then per window five numbers as in take,
---          as it stood before the grant was charged
--- include: server-time, refuse-when-late, arrival-units, windows, distinct, blocks, receipt-marks, ledgers

local asks, position = ARGV[2], 1
local ask_form, limit_form, leased_form = '<HBdddddd', '<HHd', '<BBHHHdddddddd'
local reply = { now_us, 0, 0, 0 }

-- What `look`, `take` and `credit` know as `a`: for arrivals what the cost is worth, as computed by `worthMs` and
-- `creditWorthMs` in core.
local function price(kind, cost, rate, a)
  return kind <= 2 and ceil(cost * a / rate * 1048576) or a
end

local function credit_price(kind, cost, rate, a)
  return kind <= 2 and floor(cost * a / rate * 1048576) or a
end

-- The largest cost up to `want` that would be taken. The remainder is rounded, in time and in what has faded.
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

-- Limits and windows of the current ask, in lists that are reused for the next one.
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
