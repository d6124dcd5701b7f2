--- Blocks subjects, each for a given time. A block that lasts longer already stays as it is.
---
--- KEYS: blocks, each once, all of one slot
--- ARGV[1]: deadline in whole milliseconds since 1970 by this server's clock; 0 for none
--- ARGV[2]: two arguments for each key: for how many whole milliseconds, and its limit's block_for in milliseconds
--- returns: { now_us, 1 } when late, else { now_us, 0, foreign, 0 }
--- include: server-time, refuse-when-late, blocks

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
