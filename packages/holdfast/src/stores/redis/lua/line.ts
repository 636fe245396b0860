/** Lua: the line of waiters, as in `protocol/line.ts`. */

export const LINE_LUA = `
-- Woken, but did not come while its window was open: it holds nobody up, and keeps its place.
local function missedItsWindow(waiter)
  local wokenAt = waiter[WOKEN_AT]
  return wokenAt and now >= wokenAt + WINDOW_MS
end

-- The permits taken, and the smallest capacity that anybody concerned names.
local function taken()
  local permits, capacity = 0, MAX_SAFE
  for i = 1, #holders do
    permits = permits + holders[i][PERMITS]
    capacity = math.min(capacity, holders[i][CAPACITY])
  end
  for i = 1, #rests do
    permits = permits + rests[i][PERMITS]
    capacity = math.min(capacity, rests[i][CAPACITY])
  end
  return permits, capacity
end

-- Whether a claimant behind the first so many waiters fits beside holders, rests and what is kept for the woken.
local function hasRoom(ahead, wantsPermits, wantsCapacity)
  local permits, capacity = taken()
  for i = 1, ahead do
    local waiter = waiters[i]
    if not missedItsWindow(waiter) then
      if not waiter[WOKEN_AT] then return false end
      permits = permits + waiter[PERMITS]
      capacity = math.min(capacity, waiter[CAPACITY])
    end
  end
  return permits + wantsPermits <= math.min(capacity, wantsCapacity)
end

-- A copy: whoever was called and is replaced afterwards was not called as it now is.
local function replaced(waiter, expiresAt, wokenAt)
  return {
    waiter[PROCESS], waiter[NUMBER], waiter[OWNER], waiter[PERMITS], waiter[CAPACITY], expiresAt,
    waiter[INBOX], waiter[SINCE], wokenAt,
  }
end

local function call(waiter)
  called = called or {}
  called[waiter] = true
end

-- Opens a window for every waiter that now fits, in order, and closes the windows of those that no longer do.
-- Behind the first who does not fit nobody is called: a large claim is never starved by small ones.
local function callNext()
  local permits, capacity = taken()
  local blocked = false
  for i = 1, #waiters do
    local waiter = waiters[i]
    if not missedItsWindow(waiter) then
      local wokenAt = waiter[WOKEN_AT]
      blocked = blocked or permits + waiter[PERMITS] > math.min(capacity, waiter[CAPACITY])
      if blocked then
        if wokenAt then
          waiters[i] = replaced(waiter, waiter[EXPIRES_AT], false)
          changed = true
        end
      else
        permits = permits + waiter[PERMITS]
        capacity = math.min(capacity, waiter[CAPACITY])
        if not wokenAt then
          waiters[i] = replaced(waiter, waiter[EXPIRES_AT], now)
          changed = true
          call(waiters[i])
        end
      end
    end
  end
end

-- Called a while ago and not come yet: the hint may be lost, so it is named again.
local function isOverdue(waiter)
  local wokenAt = waiter[WOKEN_AT]
  return wokenAt and now >= wokenAt + NAME_AGAIN_MS and now < wokenAt + WINDOW_MS
end

-- How soon something that stands before this claimant may be over.
local function freeInMs(ahead)
  local at = MAX_SAFE
  for i = 1, #holders do at = math.min(at, holders[i][EXPIRES_AT]) end
  for i = 1, #rests do at = math.min(at, rests[i][EXPIRES_AT]) end
  for i = 1, ahead do
    local waiter = waiters[i]
    if not waiter[WOKEN_AT] then
      at = math.min(at, waiter[EXPIRES_AT])
    elseif not missedItsWindow(waiter) then
      at = math.min(at, waiter[WOKEN_AT] + WINDOW_MS, now + WINDOW_HINT_MS)
    end
  end
  return at - now
end
`;
