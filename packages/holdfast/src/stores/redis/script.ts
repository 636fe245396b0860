/**
 * The script that runs inside Redis: `decide` in Lua, applied to one or more commands, each on a key of its own.
 *
 *   KEYS[i]   the key of the ith command
 *   ARGV[i]   what it says, as in commands.ts
 *
 * It answers with the server's time, then with an answer a command, which begins with one of the codes in
 * lua/layout.ts: a text or a list. Where all are texts, as they nearly always are, the whole is one text, because that
 * is what clients take apart fastest. Every command is decided under `pcall`: the trouble of one is only its own. It
 * writes once, as its last step before the hints, so what fails before has changed nothing. A hint that may not be
 * published is none: waiters ask by themselves.
 */
import { createHash } from 'node:crypto';
import { ANSWERS_LUA } from './lua/answers.js';
import { compiled } from './lua/layout.js';
import { LINE_LUA } from './lua/line.js';
import { QUICK_LUA } from './lua/quick.js';
import { RECORD_LUA } from './lua/record.js';
import { SHAPES_LUA } from './lua/shapes.js';

const HEAD_LUA = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

const DECIDE_LUA = `
local function doOthersWait(process)
  for i = 1, #waiters do
    if waiters[i][PROCESS] ~= process then return 1 end
  end
  return 0
end

local function publish(key, channel, why)
  redis.pcall('PUBLISH', channel, why .. ':' .. key)
end

-- Whoever was called and still stands in line, and whoever was called and has not come yet.
local function sendHints(key)
  if wakes then
    for i = 1, #wakes, 2 do publish(key, wakes[i], wakes[i + 1]) end
  end
  for i = 1, #waiters do
    local waiter = waiters[i]
    if waiter[INBOX] and (called and called[waiter] or isOverdue(waiter)) then
      publish(key, waiter[INBOX], 'turn')
    end
  end
end

local answerTo = { [CLAIM] = claim, [RENEW] = renew, [RELEASE] = release, [EVICT] = evict }

return function(key, text)
  local refusal = load(key)
  if refusal then return refusal end
  local kind = string.byte(text)
  if kind == LOOK then return { RECORD, token, decision, holders, rests, waiters, ended } end
  local head = waiters[1]
  sweep()
  if #waiters > 0 then callNext() end
  local answer, process = answerTo[kind](text)
  if #waiters > 0 then callNext() end
  -- Whoever comes to the head while the key rests has to learn how long: nothing else will wake it.
  local first = waiters[1]
  if #rests > 0 and head and first and not isSame(first, head[PROCESS], head[NUMBER]) then call(first) end
  if changed then
    decision = rise(decision)
    save(key)
  end
  answer[2] = decision
  if #waiters > 0 then answer[3] = doOthersWait(process) end
  if wakes or #waiters > 0 then sendHints(key) end
  return answer
end
`;

const MAIN_LUA = `
-- Made when it is needed, because making it takes longer than most commands.
local function makeDecide()
${SHAPES_LUA}${RECORD_LUA}${LINE_LUA}${ANSWERS_LUA}${DECIDE_LUA}
end

local answers, decide = { now }, nil
for i = 1, #KEYS do
  local decided, answer = pcall(decideQuickly, KEYS[i], ARGV[i])
  if not decided or not answer then
    decide = decide or makeDecide()
    decided, answer = pcall(decide, KEYS[i], ARGV[i])
  end
  if not decided then
    local trouble = tostring(type(answer) == 'table' and answer.err or answer)
    -- A replica writes nothing, so nothing was decided. Clients that leave one for its master look for this error.
    if string.find(trouble, '^READONLY') then return { err = trouble } end
    answer = { FAILED, trouble }
  end
  answers[i + 1] = answer
end
if not decide then return table.concat(answers, ';') end
return answers
`;

export const SCRIPT = compiled(HEAD_LUA + QUICK_LUA + MAIN_LUA);

/** What Redis calls the script, once it has seen it. */
export const SCRIPT_SHA = createHash('sha1').update(SCRIPT).digest('hex');
