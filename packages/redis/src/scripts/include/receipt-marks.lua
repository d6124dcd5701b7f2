-- Marks of receipts as they will be after this call's credits; false for those that go.
local marks = {}

-- Outstanding receipts see a credit as another one being redeemed. An emptied counter holds nothing of what they stand
-- for.
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
