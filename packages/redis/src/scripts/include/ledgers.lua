-- A ledger holds what was granted of a limit to a subject and is unspent, by the epoch at whose end it is forgotten. It
-- is stored as a `G`, then per epoch its number since 1970 and its units. Epochs are those of `leaseEpoch` in core, by
-- this server's clock.
local epoch_form, epoch_bytes, ledger_tag = '<I4d', 12, 71
local epoch_ms, margin_ms, longest_hold_ms = 10000, 5000, 86400000

-- The epoch of what is granted or kept now for `hold_ms`.
local function epoch_of(hold_ms)
  return ceil((now_ms + hold_ms + margin_ms) / epoch_ms)
end

local latest_epoch = epoch_of(longest_hold_ms)
-- The ledgers in this call, by key number: `units` by epoch, their `total`, and whether it has `changed`.
local ledgers = {}

local function add_units(ledger, epoch, amount)
  ledger.units[epoch] = (ledger.units[epoch] or 0) + amount
  ledger.total = ledger.total + amount
end

-- Removes up to `amount` units, and returns how many were still there.
local function remove_units(ledger, epoch, amount)
  local before = ledger.units[epoch] or 0
  local removed = math.min(before, amount)
  if removed == 0 then return 0 end
  ledger.units[epoch] = before - removed
  ledger.total = ledger.total - removed
  ledger.changed = true
  return removed
end

-- Epochs that have ended are forgotten. None ends later than that of the longest hold from now: if one seems to, the
-- clock was set back. It is corrected for good: otherwise it would stay wrong until the clock had caught up.
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

-- Removes settled units of earlier grants, and moves those that are kept to the new epoch. Nothing is kept or returned
-- that was not granted in that epoch: a client that claims more made it up, or the ledger was lost. Returns how much of
-- the returned and of the kept units was still there.
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
