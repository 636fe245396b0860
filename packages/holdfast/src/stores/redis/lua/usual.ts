/**
 * Lua: decides the usual commands without the rest of the script: a free key is claimed, or its only holder renews or
 * releases, while nobody waits, nothing has expired and the clock has not stepped back. It answers and stores exactly
 * what the full script would. Creating the functions of the full script takes longer than most commands.
 */

/** Local variables of the command that is being decided, and of the texts that were parsed last. */
export const COMMAND_LUA: string = `
local kind, number, process
local claimText, claimNumber, claimProcess, owner, permits, capacity, ttlMs, queue, inbox, metadata
local renewText, renewNumber, renewProcess, renewMs, wantsBlock, addedMs, addedTo
local releaseText, releaseNumber, releaseProcess, minHoldMs
-- Of a claim, as they are stored: permits, capacity and expiry; the grant's time and the texts.
local terms, texts
-- Times to live, as texts: Redis takes longer to format a number than to parse it.
local claimKeepMs, renewKeepMs
`;

/** Parses `text`. Commands of a call are often alike: a text that was parsed last is not parsed again. */
export const PARSE_LUA: string = `
kind, number = string.byte(text), nil
if kind == LIKE_CLAIM then
  kind, number, text = CLAIM, tonumber(string.sub(text, 2)), ARGV[#KEYS + 1]
elseif kind == LIKE_RENEW then
  kind, number, text = RENEW, tonumber(string.sub(text, 2)), ARGV[#KEYS + 2]
elseif kind == LIKE_RELEASE then
  kind, number, text = RELEASE, tonumber(string.sub(text, 2)), ARGV[#KEYS + 3]
end
if kind == CLAIM then
  if text ~= claimText then
    local processLength, ownerLength, inboxLength, from
    claimText = text
    claimNumber, permits, capacity, ttlMs, queue, processLength, ownerLength, inboxLength, from =
      string.match(text, 'CLAIM_TEXT')
    claimProcess, from = string.sub(text, from, from + processLength - 1), from + processLength
    owner, from = string.sub(text, from, from + ownerLength - 1), from + ownerLength
    inbox, metadata = string.sub(text, from, from + inboxLength - 1), string.sub(text, from + inboxLength)
    permits, capacity, ttlMs, queue = tonumber(permits), tonumber(capacity), tonumber(ttlMs), queue == '1'
    claimKeepMs = string.format('%d', ttlMs + KEEP_MS)
    terms = struct.pack('TERMS', permits, capacity, now + ttlMs)
    texts = #text <= SHORT_MAX
      and struct.pack('TEXTS', now, #claimProcess, claimProcess, #owner, owner, #inbox, inbox, #metadata, metadata)
  end
  number, process = number or tonumber(claimNumber), claimProcess
elseif kind == RENEW then
  if text ~= renewText then
    renewText = text
    renewNumber, renewMs, wantsBlock, addedMs, addedTo, renewProcess = string.match(text, 'RENEW_TEXT')
    renewMs, wantsBlock = tonumber(renewMs), wantsBlock == '1'
    renewKeepMs = string.format('%d', renewMs + KEEP_MS)
  end
  number, process = number or tonumber(renewNumber), renewProcess
elseif kind == RELEASE then
  if text ~= releaseText then
    releaseText = text
    releaseNumber, minHoldMs, releaseProcess = string.match(text, 'RELEASE_TEXT')
    minHoldMs = tonumber(minHoldMs)
  end
  number, process = number or tonumber(releaseNumber), releaseProcess
end
`;

export const USUAL_LUA: string = `
-- The command that is being decided, and one answer per command after the time; nil while all are as usual.
local at, answers = 1, nil
local function answer(value)
  if not answers then
    answers = { now }
    for i = 1, #KEYS do answers[i + 1] = '' end
  end
  answers[at + 1] = value
end

-- Decides from the command at 'at' on. Returns, or fails, at one that the full script has to decide: 'at' is then that
-- one, and it has changed nothing, because its write is the last step.
local function decideUsual()
  local call, pack, unpack, sub, floor = redis.call, struct.pack, struct.unpack, string.sub, now * 1000
  ${COMMAND_LUA}
  while at <= #KEYS do
    local text = ARGV[at]
    ${PARSE_LUA}
    local isClaim = kind == CLAIM
    if not isClaim and kind ~= RELEASE and (kind ~= RENEW or addedTo ~= '-1') then return end
    if isClaim and (permits > capacity or not texts) then return end

    local key = KEYS[at]
    local stored = call('GET', key)
    local token, decision, marks, place, _ = 0, 0, '', 1, nil
    local heldNumber, heldPermits, heldCapacity, expiresAt, acquiredAt, by
    if stored then
      local form, version, held = string.byte(stored, 1, 3)
      if form ~= SHORT or version ~= STATE_VERSION or (held == 1) == isClaim then return end
      token, decision, place = unpack('NUMBERS', stored, 4)
      if held == 1 then
        heldNumber, heldPermits, heldCapacity, expiresAt, _, acquiredAt, by, _, _, _, place = unpack('HOLDER', stored, place)
        if heldNumber ~= number or by ~= process or expiresAt <= now then return end
      end
      marks, place = sub(stored, place), 1
    elseif not isClaim then
      return
    end

    local markedUntil, ownFrom, ownTo, ownNumber = 0, nil, nil, nil
    while place <= #marks do
      local over, ended, whose, following = unpack('MARK', marks, place)
      if over <= now then return end
      if over > markedUntil then markedUntil = over end
      if whose == process then
        if ended == number or isClaim and ended > number then return end
        ownFrom, ownTo, ownNumber = place, following, ended
      end
      place = following
    end

    decision = decision < floor and floor or decision + 1
    local fresh
    if isClaim or kind == RENEW and wantsBlock then
      local exclusive = (heldPermits or permits) == (heldCapacity or capacity)
      if not exclusive and not isClaim then return end
      fresh = token < floor and floor or token + 1
      token = exclusive and fresh + TOKEN_BLOCK - 1 or fresh
      if token > MAX_SAFE then return end
    end

    local record, keepMs
    if kind == RELEASE then
      if minHoldMs > 0 and acquiredAt + minHoldMs > now or #marks > MARKS_BYTES_MAX then return end
      if ownFrom then marks = sub(marks, 1, ownFrom - 1) .. sub(marks, ownTo) end
      local highest = ownNumber and ownNumber > number and ownNumber or number
      record = pack('HEADER', SHORT, STATE_VERSION, 0, token, decision)
        .. marks .. pack('MARK', now + KEEP_MS, highest, #process, process)
      keepMs = 'KEPT_MS'
    elseif isClaim then
      record = pack('CLAIMED', SHORT, STATE_VERSION, 1, token, decision, number, terms, fresh) .. texts .. marks
      keepMs = claimKeepMs
    else
      if now + renewMs <= expiresAt then return end
      record = pack('HEADER', SHORT, STATE_VERSION, 1, token, decision)
        .. sub(stored, 20, 43) .. pack('>I8', now + renewMs) .. sub(stored, 52)
      keepMs = renewKeepMs
    end
    local keepUntil = now + keepMs
    -- In the future only after the clock has stepped back.
    if markedUntil > keepUntil or decision >= (keepUntil - KEEP_MS) * 1000 then return end
    -- More than a thousand blocks a second bring the token ahead of the clock.
    if token >= keepUntil * 1000 then keepMs = math.floor(token / 1000) + 1 - now end
    call('SET', key, record, 'PX', keepMs)

    if fresh and fresh ~= floor then
      answer((decision - floor) .. ' ' .. (fresh - floor))
    elseif decision ~= floor then
      answer(decision - floor)
    end
    at = at + 1
  end
end
`;
