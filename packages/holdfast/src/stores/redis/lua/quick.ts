/**
 * Lua: what most commands meet, decided without the rest of the script: a free key is claimed, its only holder renews
 * or releases, nobody waits, and nothing is over. What is answered and stored is exactly what the long way would, which
 * costs several times as much, most of it for making its functions anew in every call. Answers name numbers near the
 * server's time by their distance from it: most are then a digit or two.
 */
export const QUICK_LUA = `
-- The answer, or nil where it takes the long way; an error, too, means the long way. It writes last, so only once.
local function decideQuickly(key, at)
  local kind = ARGV[at]
  if kind == 'evict' or kind == 'read' then return nil end
  local process, number = ARGV[at + 1], tonumber(ARGV[at + 2])
  local stored = redis.call('GET', key)
  local _, held, token, decision, marksAt = nil, 0, 0, 0, 1
  local by, heldNumber, permits, capacity, expiresAt, first, acquiredAt, owner, inbox, metadata
  if stored then
    if string.byte(stored) ~= SHORT then return nil end
    _, held, token, decision, marksAt = struct.unpack('HEADER', stored)
    if held == 1 then
      heldNumber, permits, capacity, expiresAt, first, acquiredAt, by, owner, inbox, metadata, marksAt =
        struct.unpack('HOLDER', stored, marksAt)
      if heldNumber ~= number or by ~= process or expiresAt <= now then return nil end
    end
  end

  -- The marks are kept as they are; that of this process is looked for.
  local marks, keep, ownFrom, ownTo, ownNumber = stored and string.sub(stored, marksAt) or '', 0, nil, nil, nil
  local place = 1
  while place <= #marks do
    local over, ended, whose, following = struct.unpack('MARK', marks, place)
    if over <= now then return nil end
    if over > keep then keep = over end
    if whose == process then ownFrom, ownTo, ownNumber = place, following, ended end
    place = following
  end

  local floor, answer = now * 1000, nil
  if kind == 'claim' then
    if held == 1 or ownFrom and ownNumber >= number then return nil end
    permits, capacity = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
    owner, inbox, metadata = ARGV[at + 3], ARGV[at + 8], ARGV[at + 9]
    if permits > capacity or #process + #owner + #inbox + #metadata > SHORT_MAX then return nil end
    first = token < floor and floor or token + 1
    token = permits == capacity and first + TOKEN_BLOCK - 1 or first
    held, acquiredAt, expiresAt = 1, now, now + ARGV[at + 6]
    answer = { JUST_GRANTED, 0, first - floor }
  elseif held == 0 or ownNumber == number then
    return nil
  elseif kind == 'renew' then
    local till = now + ARGV[at + 3]
    if ARGV[at + 5] ~= '' or till <= expiresAt then return nil end
    expiresAt = till
    answer = { JUST_RENEWED, 0 }
    if ARGV[at + 4] == '1' and permits == capacity then
      local fresh = token < floor and floor or token + 1
      token = fresh + TOKEN_BLOCK - 1
      answer[3] = fresh - floor
    end
  else
    if acquiredAt + ARGV[at + 3] > now or #marks > SHORT_MAX then return nil end
    if ownFrom then
      if ownNumber > number then number = ownNumber end
      marks = string.sub(marks, 1, ownFrom - 1) .. string.sub(marks, ownTo)
    end
    held, keep = 0, now + KEEP_MS
    marks = marks .. struct.pack('MARK', keep, number, #process, process)
    answer = { JUST_RELEASED, 0 }
  end

  if token > MAX_SAFE then return nil end
  decision = decision < floor and floor or decision + 1
  answer[2] = decision - floor
  keep = math.max(keep, math.floor(token / 1000) + 1, math.floor(decision / 1000) + KEEP_MS + 1)
  local record
  if held == 1 then
    keep = math.max(keep, expiresAt + KEEP_MS)
    record = struct.pack('HEADER', SHORT, 1, token, decision)
      .. struct.pack(
        'HOLDER', number, permits, capacity, expiresAt, first, acquiredAt, #process, process, #owner, owner,
        #inbox, inbox, #metadata, metadata
      )
      .. marks
  else
    record = struct.pack('HEADER', SHORT, 0, token, decision) .. marks
  end
  redis.call('SET', key, record, 'PX', keep - now)
  return answer
end
`;
