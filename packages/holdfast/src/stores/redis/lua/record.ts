/**
 * Lua: the record of a key and its expired entries, as in `protocol/draft.ts` and `protocol/state.ts`. Lists are replaced
 * where `decide` replaces them, because it tells entries apart by identity.
 *
 * Most records have no waiters, no cool-downs, and at most one holder. Those are stored in a short form, a fixed sequence of
 * numbers and texts, which is read and written several times as fast as nested lists.
 */
export const RECORD_LUA: string = `
local function readShort(stored)
  local version = string.byte(stored, 2)
  if version ~= STATE_VERSION then return { version } end
  local _, _, held, token, decision, at = struct.unpack('HEADER', stored)
  local holders, ended = {}, {}
  if held == 1 then
    local number, permits, capacity, expiresAt, first, acquiredAt, process, owner, inbox, metadata
    number, permits, capacity, expiresAt, first, acquiredAt, process, owner, inbox, metadata, at =
      struct.unpack('HOLDER', stored, at)
    holders[1] = {
      process, number, owner, permits, capacity, expiresAt, inbox ~= '' and inbox, first, acquiredAt,
      metadata ~= '' and metadata,
    }
  end
  while at <= #stored do
    local over, number, process, following = struct.unpack('MARK', stored, at)
    ended[#ended + 1] = { process, number, over }
    at = following
  end
  return { STATE_VERSION, token, decision, holders, {}, {}, ended }
end

local function isShort(record)
  if record[EVICTIONS] or #record[HOLDERS] > 1 or #record[RESTS] > 0 or #record[WAITERS] > 0 then return false end
  local holder, length = record[HOLDERS][1], 0
  if holder then
    length = #holder[PROCESS] + #holder[OWNER] + #(holder[INBOX] or '') + #(holder[METADATA] or '')
  end
  for i = 1, #record[ENDED] do length = math.max(length, #record[ENDED][i][PROCESS]) end
  return length <= SHORT_MAX
end

local function writeShort(record)
  local holder, ended = record[HOLDERS][1], record[ENDED]
  local held = holder and 1 or 0
  local parts = { struct.pack('HEADER', SHORT, STATE_VERSION, held, record[RECORD_TOKEN], record[DECISION]) }
  if holder then
    local inbox, metadata = holder[INBOX] or '', holder[METADATA] or ''
    parts[2] = struct.pack(
      'HOLDER', holder[NUMBER], holder[PERMITS], holder[CAPACITY], holder[EXPIRES_AT], holder[TOKEN],
      holder[ACQUIRED_AT], #holder[PROCESS], holder[PROCESS], #holder[OWNER], holder[OWNER], #inbox, inbox,
      #metadata, metadata
    )
  end
  for i = 1, #ended do
    local mark = ended[i]
    parts[#parts + 1] = struct.pack('MARK', mark[UNTIL], mark[NUMBER], #mark[PROCESS], mark[PROCESS])
  end
  return table.concat(parts)
end

-- The record of the current command.
local token, decision, holders, rests, waiters, ended
-- Nil where there are none.
local evictions
-- Whether there is anything to store; waiters to wake; other wake-ups, as inbox and reason alternately.
local changed, woken, wakes

-- Nil, or the answer that says why nothing can be decided.
local function load(key)
  local stored = redis.call('GET', key)
  changed, woken, wakes = false, nil, nil
  if not stored then
    token, decision, holders, rests, waiters, ended, evictions = 0, 0, {}, {}, {}, {}, nil
    return nil
  end
  local readable, record = pcall(string.byte(stored) == SHORT and readShort or cmsgpack.unpack, stored)
  if not readable or type(record) ~= 'table' or type(record[VERSION]) ~= 'number' then return { FOREIGN } end
  if record[VERSION] ~= STATE_VERSION then return { OTHER_VERSION, record[VERSION] } end
  token, decision, holders, rests, waiters, ended, evictions = unpack(record, RECORD_TOKEN, EVICTIONS)
  return nil
end

-- Above every earlier number, of this record and of a deleted one: the clock had passed those.
local function rise(last)
  return math.max(last + 1, now * 1000)
end

local function isSame(entry, process, number)
  return entry[NUMBER] == number and entry[PROCESS] == process
end

local function indexOf(list, process, number)
  for i = 1, #list do
    if isSame(list[i], process, number) then return i end
  end
  return nil
end

local function without(list, index)
  local rest = {}
  for i = 1, #list do
    if i ~= index then rest[#rest + 1] = list[i] end
  end
  return rest
end

local function isAnyOver(list, at)
  for i = 1, #list do
    if list[i][at] <= now then return true end
  end
  return false
end

local function live(list, at)
  local alive = {}
  for i = 1, #list do
    if list[i][at] > now then alive[#alive + 1] = list[i] end
  end
  return alive
end

-- A claim at or below its process's mark is refused, so a waiter there could never be granted: it leaves the queue.
local function markEnded(process, number)
  local at, highest = nil, number
  for i = 1, #ended do
    if ended[i][PROCESS] == process then
      if ended[i][NUMBER] == number then return end
      at, highest = i, math.max(number, ended[i][NUMBER])
      break
    end
  end
  changed = true
  local stay = {}
  for i = 1, #waiters do
    local waiter = waiters[i]
    if waiter[PROCESS] ~= process or waiter[NUMBER] > number then stay[#stay + 1] = waiter end
  end
  if #stay < #waiters then waiters = stay end
  if at then table.remove(ended, at) end
  while #ended >= MARKS_MAX do table.remove(ended, 1) end
  ended[#ended + 1] = { process, highest, now + KEEP_MS }
end

local function markOver(list)
  for i = 1, #list do
    if list[i][EXPIRES_AT] <= now then markEnded(list[i][PROCESS], list[i][NUMBER]) end
  end
end

-- Drops expired entries. An expired hold has ended, so it is marked like a released one.
local function sweep()
  -- No change by itself, as in draft.ts.
  if evictions then
    evictions = live(evictions, UNTIL)
    if #evictions == 0 then evictions = nil end
  end
  if isAnyOver(ended, UNTIL) then
    ended = live(ended, UNTIL)
    changed = true
  end
  if isAnyOver(rests, EXPIRES_AT) then
    rests = live(rests, EXPIRES_AT)
    changed = true
  end
  if isAnyOver(holders, EXPIRES_AT) then
    local before = holders
    holders = live(holders, EXPIRES_AT)
    changed = true
    markOver(before)
  end
  -- Only now: the end of a holder may have removed waiters of its process.
  if isAnyOver(waiters, EXPIRES_AT) then
    local before = waiters
    waiters = live(waiters, EXPIRES_AT)
    changed = true
    markOver(before)
  end
end

-- When Redis may delete the record: everything in it expired, the clock past its token, and kept for KEEP_MS.
local function expendableAt()
  local at = math.max(math.floor(token / 1000), math.floor(decision / 1000) + KEEP_MS) + 1
  for i = 1, #holders do at = math.max(at, holders[i][EXPIRES_AT] + KEEP_MS) end
  for i = 1, #rests do at = math.max(at, rests[i][EXPIRES_AT]) end
  for i = 1, #waiters do at = math.max(at, waiters[i][EXPIRES_AT] + KEEP_MS) end
  for i = 1, #ended do at = math.max(at, ended[i][UNTIL]) end
  if evictions then
    for i = 1, #evictions do at = math.max(at, evictions[i][UNTIL]) end
  end
  return at
end

local function save(key)
  local record = { STATE_VERSION, token, decision, holders, rests, waiters, ended, evictions }
  local stored = isShort(record) and writeShort(record) or cmsgpack.pack(record)
  redis.call('SET', key, stored, 'PX', expendableAt() - now)
end
`;
