/**
 * Lua: the short form of a stored record. Most records have no waiters, no rests, and at most one holder. Those are
 * stored as a fixed sequence of numbers and texts, which is read and written several times as fast as nested lists.
 */
export const SHORT_RECORD_LUA = `
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
  if #record[HOLDERS] > 1 or #record[RESTS] > 0 or #record[WAITERS] > 0 then return false end
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
`;
