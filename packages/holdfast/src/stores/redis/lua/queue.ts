/** Lua: the queue of waiters, as in `protocol/waiters.ts`. */

export const QUEUE_LUA: string = `
-- Woken, but did not come while its window was open: it blocks nobody, and keeps its place.
local function missedItsWindow(waiter)
  local wokenAt = waiter[WOKEN_AT]
  return wokenAt and now >= wokenAt + WINDOW_MS
end

-- The permits in use, and the smallest capacity that a holder or rest names.
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

-- Whether a claimant behind the first 'ahead' waiters fits beside holders, cool-downs and the permits kept for woken waiters.
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

-- A copy, because 'woken' tells waiters apart by identity: the replaced one was not woken.
local function replaced(waiter, expiresAt, wokenAt)
  return {
    waiter[PROCESS], waiter[NUMBER], waiter[OWNER], waiter[PERMITS], waiter[CAPACITY], expiresAt,
    waiter[INBOX], waiter[SINCE], wokenAt,
  }
end

local function wakeWaiter(waiter)
  woken = woken or {}
  woken[waiter] = true
end

-- Opens a window for every waiter that now fits, in order, and closes the windows of those that no longer do.
-- Behind the first that does not fit nobody is woken: small claims never starve a large one.
local function wakeNext()
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
          wakeWaiter(waiters[i])
        end
      end
    end
  end
end

-- Woken a while ago and not come yet: the wake-up may be lost, so it is sent again.
local function isOverdue(waiter)
  local wokenAt = waiter[WOKEN_AT]
  return wokenAt and now >= wokenAt + NAME_AGAIN_MS and now < wokenAt + WINDOW_MS
end

-- How soon something that blocks this claimant may end.
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
