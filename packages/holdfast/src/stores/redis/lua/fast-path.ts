/**
 * Lua: the usual cases, decided without the rest of the script: a free key is claimed, or its only holder renews or
 * releases, while nobody waits and nothing has expired. It answers and stores exactly what the full script would.
 *
 * It is a copy of a part of `decide` because of its speed: the full script takes several times as long, mostly for
 * creating its functions, which Redis does in every call. The conformance suite runs the same commands through both.
 *
 * Answers are short texts: a code, then the decision and the token, if any, as distances from the server's time. The
 * rest follows from the command.
 */
export const FAST_PATH_LUA = `
-- The answer; nil or an error where the full script has to decide. The write is the last step, so it happens once.
local function decideFast(key, text)
  local kind = string.byte(text)
  local number, permits, capacity, ms, flag, addedTo, process, owner, inbox, metadata, _
  if kind == CLAIM then
    local processLength, ownerLength, inboxLength, at
    number, permits, capacity, ms, flag, processLength, ownerLength, inboxLength, at = string.match(text, 'CLAIM_TEXT')
    process, at = string.sub(text, at, at + processLength - 1), at + processLength
    owner, at = string.sub(text, at, at + ownerLength - 1), at + ownerLength
    inbox, metadata = string.sub(text, at, at + inboxLength - 1), string.sub(text, at + inboxLength)
    permits, capacity = tonumber(permits), tonumber(capacity)
    if permits > capacity or #text > SHORT_MAX then return nil end
  elseif kind == RELEASE then
    number, ms, process = string.match(text, 'RELEASE_TEXT')
  elseif kind == RENEW then
    number, ms, flag, _, addedTo, process = string.match(text, 'RENEW_TEXT')
    if addedTo ~= '-1' then return nil end
  else
    return nil
  end
  number = tonumber(number)

  local stored = redis.call('GET', key)
  local held, token, decision, marksAt = 0, 0, 0, 1
  local by, heldNumber, expiresAt, first, acquiredAt
  if stored then
    if string.byte(stored) ~= SHORT then return nil end
    local version
    _, version, held, token, decision, marksAt = struct.unpack('HEADER', stored)
    if version ~= STATE_VERSION then return nil end
    if held == 1 then
      heldNumber, permits, capacity, expiresAt, first, acquiredAt, by, owner, inbox, metadata, marksAt =
        struct.unpack('HOLDER', stored, marksAt)
      if kind == CLAIM or heldNumber ~= number or by ~= process or expiresAt <= now then return nil end
    end
  end
  if held == 0 and kind ~= CLAIM then return nil end

  -- Marks are kept as they are; the loop finds the mark of this process.
  local marks, keep, place, ownFrom, ownTo, ownNumber = '', 0, 1, nil, nil, nil
  if stored then marks = string.sub(stored, marksAt) end
  while place <= #marks do
    local over, ended, whose, following = struct.unpack('MARK', marks, place)
    if over <= now then return nil end
    if over > keep then keep = over end
    if whose == process then
      if ended == number or kind == CLAIM and ended > number then return nil end
      ownFrom, ownTo, ownNumber = place, following, ended
    end
    place = following
  end

  local floor = now * 1000
  local answer, fresh
  decision = decision < floor and floor or decision + 1
  if kind == CLAIM or kind == RENEW and flag == '1' and permits == capacity then
    fresh = token < floor and floor or token + 1
    token = permits == capacity and fresh + TOKEN_BLOCK - 1 or fresh
    if token > MAX_SAFE then return nil end
  end
  if kind == CLAIM then
    first, acquiredAt, expiresAt = fresh, now, now + ms
    answer = string.format('FAST_GRANTED %d %d', decision - floor, fresh - floor)
  elseif kind == RENEW then
    if now + ms <= expiresAt then return nil end
    expiresAt = now + ms
    answer = string.format(fresh and 'FAST_RENEWED %d %d' or 'FAST_RENEWED %d', decision - floor, fresh and fresh - floor)
  else
    if acquiredAt + ms > now or #marks > MARKS_BYTES_MAX then return nil end
    if ownFrom then
      if ownNumber > number then number = ownNumber end
      marks = string.sub(marks, 1, ownFrom - 1) .. string.sub(marks, ownTo)
    end
    keep = now + KEEP_MS
    marks = marks .. struct.pack('MARK', keep, number, #process, process)
    answer = string.format('FAST_RELEASED %d', decision - floor)
  end

  keep = math.max(keep, math.floor(token / 1000) + 1, math.floor(decision / 1000) + KEEP_MS + 1)
  local record
  if kind == RELEASE then
    record = struct.pack('HEADER', SHORT, STATE_VERSION, 0, token, decision) .. marks
  else
    keep = math.max(keep, expiresAt + KEEP_MS)
    record = struct.pack('HEADER', SHORT, STATE_VERSION, 1, token, decision)
      .. struct.pack(
        'HOLDER', number, permits, capacity, expiresAt, first, acquiredAt, #process, process, #owner, owner,
        #inbox, inbox, #metadata, metadata
      )
      .. marks
  end
  redis.call('SET', key, record, 'PX', keep - now)
  return answer
end
`;
