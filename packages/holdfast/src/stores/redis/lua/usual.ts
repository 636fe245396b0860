/**
 * Lua: decides the usual commands without the rest of the script: a free key is claimed, or its only holder renews or
 * releases, while nobody waits, nothing has expired and the clock has not stepped back. Its answers and records are
 * exactly those of the full script. Creating the functions of the full script takes longer than most commands.
 */

/** Takes the letter of a command, the place of its terms among the arguments, and its hold's number. */
const ENTRY_LUA = `
local letter, high, low, a, b, c, d, e, f, g, h = byte(commands, (at - 1) * width + 1, at * width)
local place = high * 128 + low
number = ((a * 128 + b) * 128 + c) * 128 + d
if h then number = (((number * 128 + e) * 128 + f) * 128 + g) * 128 + h end
`;

/** Stores the answer to the command at 'at'. All answers before the first stored one are 0. */
const answerLua = (value: string): string => `
if not answers then
  answers = { now, 0 }
  for i = 3, #KEYS + 1 do answers[i] = 0 end
end
answers[at + 1] = ${value}
`;
export const ANSWER_LUA: string = answerLua('value');

/** Parses the terms of any claim from `terms`. */
const CLAIM_LUA = `
local processLength, ownerLength, inboxLength, from
permits, capacity, ttlMs, queue, processLength, ownerLength, inboxLength, from = string.match(terms, 'CLAIM_TEXT')
process, from = string.sub(terms, from, from + processLength - 1), from + processLength
owner, from = string.sub(terms, from, from + ownerLength - 1), from + ownerLength
inbox, metadata = string.sub(terms, from, from + inboxLength - 1), string.sub(terms, from + inboxLength)
permits, capacity, ttlMs, queue = tonumber(permits), tonumber(capacity), tonumber(ttlMs), queue == '1'
`;

/** The command as the full script reads it. */
export const COMMAND_LUA: string = `
local kind, number, process
local owner, permits, capacity, ttlMs, queue, inbox, metadata
local renewMs, wantsBlock, addedMs, addedTo
local minHoldMs

local commands, byte, width = ARGV[1], string.byte, #ARGV[1] / #KEYS
local function parse()
  ${ENTRY_LUA}
  local terms = ARGV[place]
  kind = letter
  if kind == CLAIM then
    ${CLAIM_LUA}
  elseif kind == ONE or kind == ONE_QUEUED then
    process, owner, inbox, metadata = struct.unpack('TEXTS', terms)
    permits, capacity, ttlMs, queue, kind = 1, 1, ARGV[place + 1] - KEEP_MS, kind == ONE_QUEUED, CLAIM
  elseif kind == RENEW then
    renewMs, wantsBlock, addedMs, addedTo, process = string.match(terms, 'RENEW_TEXT')
    renewMs, wantsBlock = tonumber(renewMs), wantsBlock == '1'
  elseif kind == RELEASE then
    minHoldMs, process = 0, terms
  elseif kind == RELEASE_LATER then
    minHoldMs, process = string.match(terms, 'RELEASE_TEXT')
    minHoldMs, kind = tonumber(minHoldMs), RELEASE
  end
  return terms
end
`;

export const USUAL_LUA: string = `
-- The command that is being decided, and the answers after the time: nil while all are 0.
local at, answers = 1, nil

-- Decides from the command at 'at' on. Returns, or fails, at one that the full script has to decide: 'at' is then that
-- one, and it has changed nothing, because its write is the last step.
local function decideUsual()
  -- Local variables: globals and those of the script take longer.
  local call, pack, unpack, sub, byte = redis.call, struct.pack, struct.unpack, string.sub, string.byte
  local keys, args, now = KEYS, ARGV, now
  local commands, count, floor = args[1], #keys, now * 1000
  local width = #commands / count
  -- Terms are often those of the command before, and are then not parsed again. Times to live are texts as well: Redis
  -- takes longer to format a number than to parse it.
  local claimPlace, claimer, amounts, exclusive, texts, claimKeepMs, claimKeptMs, claimHead, claimTail
  local renewPlace, renewer, renewMs, wantsBlock, renewKeepMs
  local releasePlace, releaser, minHoldMs
  for command = at, count do
    at = command
    local number
    ${ENTRY_LUA}
    local isClaim, isRelease, process, keepMs, keptMs
    if letter == ONE or letter == ONE_QUEUED or letter == CLAIM then
      if place ~= claimPlace then
        local terms = args[place]
        claimPlace, claimTail = place, nil
        if letter == CLAIM then
          local process, owner, permits, capacity, ttlMs, queue, inbox, metadata
          ${CLAIM_LUA}
          if permits > capacity or #terms > SHORT_MAX then return end
          claimer, exclusive, amounts = process, permits == capacity, pack('AMOUNTS', permits, capacity)
          texts = pack('TEXTS', #process, process, #owner, owner, #inbox, inbox, #metadata, metadata)
          claimKeepMs = string.format('%d', ttlMs + KEEP_MS)
        else
          claimer, exclusive, amounts = sub(terms, 3, 2 + byte(terms, 2)), true, 'ONE_OF_ONE'
          texts, claimKeepMs = terms, args[place + 1]
        end
        claimKeptMs = claimKeepMs + 0
      end
      isClaim, process, keepMs, keptMs = true, claimer, claimKeepMs, claimKeptMs
    elseif letter == RELEASE or letter == RELEASE_LATER then
      if place ~= releasePlace then
        releasePlace, minHoldMs, releaser = place, 0, args[place]
        if letter == RELEASE_LATER then
          minHoldMs, releaser = string.match(releaser, 'RELEASE_TEXT')
          minHoldMs = tonumber(minHoldMs)
        end
      end
      isRelease, process, keepMs, keptMs = true, releaser, 'KEPT_MS', KEPT_MS
    elseif letter == RENEW then
      if place ~= renewPlace then
        local addedTo, _
        renewMs, wantsBlock, _, addedTo, renewer = string.match(args[place], 'RENEW_TEXT')
        if addedTo ~= '-1' then return end
        renewPlace, renewMs, wantsBlock = place, tonumber(renewMs), wantsBlock == '1'
        renewKeepMs = string.format('%d', renewMs + KEEP_MS)
      end
      process, keepMs, keptMs = renewer, renewKeepMs, renewMs + KEEP_MS
    else
      return
    end

    local key = keys[command]
    local stored = call('GET', key)
    local form, token, decision, marksFrom, _
    local heldNumber, heldPermits, heldCapacity, expiresAt, acquiredAt, by
    if not isClaim then
      form, token, decision, heldNumber, heldPermits, heldCapacity, expiresAt, _, acquiredAt, by, _, _, _, marksFrom =
        unpack('HELD', stored)
      if heldNumber ~= number or form ~= HELD_FORM or by ~= process or expiresAt <= now then return end
    elseif stored then
      form, token, decision, marksFrom = unpack('FREE', stored)
      if form ~= FREE_FORM then return end
    else
      stored, token, decision, marksFrom = '', 0, 0, 1
    end

    local length, from, markedUntil, ownFrom, ownTo, ownNumber = #stored, marksFrom, 0, nil, nil, nil
    while from <= length do
      local over, ended, whose, following = unpack('MARK', stored, from)
      if over <= now then return end
      if over > markedUntil then markedUntil = over end
      if whose == process then
        if ended == number or isClaim and ended > number then return end
        ownFrom, ownTo, ownNumber = from, following, ended
      end
      from = following
    end

    decision = decision < floor and floor or decision + 1
    local fresh
    if isClaim or not isRelease and wantsBlock then
      if not isClaim and heldPermits ~= heldCapacity then return end
      fresh = token < floor and floor or token + 1
      token = (not isClaim or exclusive) and fresh + TOKEN_BLOCK - 1 or fresh
      if token > MAX_SAFE then return end
    end
    -- How far decision and token are beyond the time.
    local beyond = decision - floor
    if beyond >= BEYOND_MAX then return end
    if fresh then beyond = beyond + (fresh - floor) * BEYOND_MAX end

    local keepUntil = now + keptMs
    -- In the future only after the clock has stepped back.
    if beyond > MAX_SAFE or markedUntil > keepUntil or decision >= (keepUntil - KEEP_MS) * 1000 then return end
    -- More than a thousand blocks a second bring the token ahead of the clock.
    if token >= keepUntil * 1000 then keepMs = math.floor(token / 1000) + 1 - now end

    local record
    if isClaim then
      local marks = length >= marksFrom and sub(stored, marksFrom) or ''
      if beyond > 0 or count == 1 then
        record = pack('CLAIMED', HELD_FORM, token, decision, number, amounts, now + keptMs - KEEP_MS, fresh, now, texts, marks)
      else
        -- The number and the marks are all that differs from other claims of the call.
        if not claimTail then
          claimHead = pack('FREE', HELD_FORM, token, decision)
          claimTail = amounts .. pack('>I8I8I8', now + keptMs - KEEP_MS, fresh, now) .. texts
        end
        record = claimHead .. pack('>I8', number) .. claimTail .. marks
      end
    elseif isRelease then
      if minHoldMs > 0 and acquiredAt + minHoldMs > now or length - marksFrom >= MARKS_BYTES_MAX then return end
      local marks = ''
      if not ownFrom then
        marks = sub(stored, marksFrom)
      elseif ownTo - ownFrom <= length - marksFrom then
        marks = sub(stored, marksFrom, ownFrom - 1) .. sub(stored, ownTo)
      end
      if ownNumber and ownNumber > number then number = ownNumber end
      record = pack('RELEASED_RECORD', FREE_FORM, token, decision, marks, now + KEEP_MS, number, #process, process)
    else
      if now + renewMs <= expiresAt then return end
      record = pack('FREE', HELD_FORM, token, decision)
        .. sub(stored, 20, 43) .. pack('>I8', now + renewMs) .. sub(stored, 52)
    end
    call('SET', key, record, 'PX', keepMs)
    if beyond > 0 then
      ${answerLua('beyond')}
    end
  end
  at = count + 1
end
`;
