/**
 * Lua: the commands, as in `protocol/decide.ts`. Each returns its answer, whose second and third item, the decision and
 * whether others wait, are filled in last.
 */

const CLAIM_LUA = `
local function reserve(count)
  local first = rise(token)
  local last = first + count - 1
  if last > MAX_SAFE then error({ err = 'The tokens of this key are used up.' }) end
  token = last
  changed = true
  return first, last
end

local function grantOf(holder)
  local first = holder[TOKEN]
  local last = holder[PERMITS] == holder[CAPACITY] and first + TOKEN_BLOCK - 1 or first
  return { GRANTED, 0, 0, first, last, holder[ACQUIRED_AT], holder[EXPIRES_AT] }
end

-- A process has one waiter per key: a later claim ends the earlier one, and then others may be next.
local function endEarlierWaiters()
  local before = waiters
  for i = 1, #before do
    local waiter = before[i]
    if waiter[PROCESS] == process and waiter[NUMBER] < number then markEnded(process, waiter[NUMBER]) end
  end
  if waiters ~= before then wakeNext() end
end

-- Keeps or takes a place in the queue. The position from 0, or -1 for none.
local function enqueue(place)
  local expiresAt = now + WAITER_LIFE_MS
  if place then
    local waiter = waiters[place]
    local returned = missedItsWindow(waiter)
    if returned or expiresAt - waiter[EXPIRES_AT] >= WAITER_REFRESH_MS then
      waiters[place] = replaced(waiter, expiresAt, not returned and waiter[WOKEN_AT])
      changed = true
    end
    return place - 1
  end
  if not queue or #waiters >= QUEUE_MAX then return -1 end
  waiters[#waiters + 1] = { process, number, owner, permits, capacity, expiresAt, inbox ~= '' and inbox, now, false }
  changed = true
  return #waiters - 1
end

local function wake(inbox, why)
  wakes = wakes or {}
  wakes[#wakes + 1] = inbox
  wakes[#wakes + 1] = why
end

-- Only exclusive holds are passed on within a process, so only their holders need to know that others wait.
local function tellHolders()
  for i = 1, #holders do
    local holder = holders[i]
    local exclusive = holder[PERMITS] == holder[CAPACITY]
    if exclusive and holder[PROCESS] ~= process and holder[INBOX] then wake(holder[INBOX], 'waiting') end
  end
end

-- The public part of a holder or a rest: without hold and inbox.
local function viewsOf(list, views, resting)
  for i = 1, math.min(#list, HOLDERS_SHOWN - #views) do
    local holder = list[i]
    views[#views + 1] = {
      holder[OWNER], holder[PERMITS], holder[CAPACITY], holder[TOKEN], holder[ACQUIRED_AT],
      holder[EXPIRES_AT], holder[METADATA], resting,
    }
  end
  return views
end

local function claim()
  local held = indexOf(holders, process, number)
  if held then return grantOf(holders[held]) end
  for i = 1, #ended do
    if ended[i][PROCESS] == process and ended[i][NUMBER] >= number then
      return { WITHDRAWN, 0, 0 }
    end
  end
  if #waiters > 0 then endEarlierWaiters() end
  local place = indexOf(waiters, process, number)
  local ahead = place and place - 1 or #waiters
  if hasRoom(ahead, permits, capacity) then
    local first = reserve(permits == capacity and TOKEN_BLOCK or 1)
    local holder = {
      process, number, owner, permits, capacity, now + ttlMs, inbox ~= '' and inbox, first, now, metadata ~= '' and metadata,
    }
    holders[#holders + 1] = holder
    if place then waiters = without(waiters, place) end
    return grantOf(holder)
  end
  local position = enqueue(place)
  if queue then tellHolders() end
  local shown = viewsOf(rests, viewsOf(holders, {}, 0), 1)
  return { BUSY, 0, 0, freeInMs(ahead), position, shown }
end
`;

const END_LUA = `
-- 'added' names the expiry that it extends, and applies only to that one.
local function renew()
  local held = indexOf(holders, process, number)
  if not held then
    local evicted = evictions and indexOf(evictions, process, number)
    if evicted then return { LOST, 0, 0, 1, evictions[evicted][REASON] } end
    return { LOST, 0, 0 }
  end
  local holder = holders[held]
  local expiresAt = holder[EXPIRES_AT]
  if addedTo == '-1' then
    expiresAt = math.max(expiresAt, now + renewMs)
  elseif tonumber(addedTo) == expiresAt then
    expiresAt = expiresAt + addedMs
  end
  if expiresAt ~= holder[EXPIRES_AT] then
    holder[EXPIRES_AT] = expiresAt
    changed = true
  end
  if not wantsBlock or holder[PERMITS] ~= holder[CAPACITY] then
    return { RENEWED, 0, 0, expiresAt }
  end
  local first, last = reserve(TOKEN_BLOCK)
  return { RENEWED, 0, 0, expiresAt, first, last }
end

local function leaveRest(holder)
  changed = true
  local expiresAt = holder[ACQUIRED_AT] + minHoldMs
  if minHoldMs == 0 or expiresAt <= now then return end
  rests[#rests + 1] = {
    false, false, holder[OWNER], holder[PERMITS], holder[CAPACITY], expiresAt, false, holder[TOKEN],
    holder[ACQUIRED_AT], false,
  }
  if waiters[1] then wakeWaiter(waiters[1]) end
end

local function release()
  local held = indexOf(holders, process, number)
  markEnded(process, number)
  if not held then return { RELEASED, 0, 0, 0 } end
  local holder = holders[held]
  holders = without(holders, held)
  leaveRest(holder)
  return { RELEASED, 0, 0, 1 }
end

-- An exclusive hold is alone on its key: every token reserved since its grant is of its blocks.
local function isNamed(holder, fromToken, upToToken)
  local last = holder[PERMITS] == holder[CAPACITY] and token or holder[TOKEN]
  return holder[TOKEN] <= upToToken and last >= fromToken
end

local function evict(text)
  local fromToken, upToToken, reason = string.match(text, 'EVICT_TEXT')
  fromToken, upToToken = tonumber(fromToken), tonumber(upToToken)
  local gone, stay, resting = {}, {}, {}
  for i = 1, #holders do
    local list = isNamed(holders[i], fromToken, upToToken) and gone or stay
    list[#list + 1] = holders[i]
  end
  for i = 1, #rests do
    if not isNamed(rests[i], fromToken, upToToken) then resting[#resting + 1] = rests[i] end
  end
  local count = #gone + #rests - #resting
  if count == 0 then return { EVICTED, 0, 0, 0 } end
  holders, rests, changed = stay, resting, true
  for i = 1, #gone do
    local holder = gone[i]
    markEnded(holder[PROCESS], holder[NUMBER])
    evictions = evictions or {}
    if #evictions >= EVICTIONS_MAX then table.remove(evictions, 1) end
    local kept = math.min(holder[EXPIRES_AT], now + EVICTION_MS)
    evictions[#evictions + 1] = { holder[PROCESS], holder[NUMBER], kept, reason ~= '' and reason }
    if holder[INBOX] then wake(holder[INBOX], 'evicted') end
  end
  return { EVICTED, 0, 0, count }
end
`;

export const COMMANDS_LUA: string = CLAIM_LUA + END_LUA;
