-- A block is `until_us:length_ms`: when it ends, and how long it was begun for. No block lasts longer than its length:
-- if it seems to, the clock was set back. Blocks without a length are from an earlier version, and as long as
-- `block_for`.
local longest_block_ms = 31622400000
local latest_moment_us = 9007199254740992

-- When a block ends, how long it was begun for, and whether that had to be corrected; 0 if there is none.
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

-- How many milliseconds a block still lasts, and the length of one that had to be corrected, which must be written.
local function blocked_for(text, block_for_ms)
  local until_us, length_ms, brought_back = read_block(text, block_for_ms)
  return math.ceil(math.max(until_us - now_us, 0) / 1000), brought_back and length_ms
end
