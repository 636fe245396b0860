/**
 * The script that runs inside Redis: `decide` in Lua, applied to one or more commands, each on a key of its own.
 *
 *   KEYS[i]   the key of the ith command
 *   ARGV[1]   what the channels of inboxes begin with
 *   ARGV[2…]  the commands one after the other, each of so many texts as its kind has (see commands.ts)
 *
 * It answers with the server's time, and a list a command that begins with one of the codes in lua/layout.ts. Every
 * command is decided under `pcall`: the trouble of one is only its own. It writes once, as its last step before the
 * hints, so what fails before has changed nothing. A hint that may not be published is none: waiters ask by themselves.
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

local function publish(key, inbox, why)
  redis.pcall('PUBLISH', ARGV[1] .. inbox, why .. ':' .. key)
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

local answerTo = { claim = claim, renew = renew, release = release, evict = evict }

return function(key, at)
  local refusal = load(key)
  if refusal then return refusal end
  local kind = ARGV[at]
  if kind == 'read' then return { RECORD, token, decision, holders, rests, waiters, ended } end
  local head = waiters[1]
  sweep()
  if #waiters > 0 then callNext() end
  local answer = answerTo[kind](at)
  if #waiters > 0 then callNext() end
  -- Whoever comes to the head while the key rests has to learn how long: nothing else will wake it.
  local first = waiters[1]
  if #rests > 0 and head and first and not isSame(first, head[PROCESS], head[NUMBER]) then call(first) end
  if changed then
    decision = rise(decision)
    save(key)
  end
  answer[2] = decision
  if #waiters > 0 then
    answer[3] = doOthersWait(kind ~= 'evict' and ARGV[at + 1])
  end
  if wakes or #waiters > 0 then sendHints(key) end
  return answer
end
`;

const MAIN_LUA = `
-- Made when it is needed, because making it takes longer than most commands.
local function makeDecide()
${SHAPES_LUA}${RECORD_LUA}${LINE_LUA}${ANSWERS_LUA}${DECIDE_LUA}
end

local answers = { now }
local at, decide = 2, nil
for i = 1, #KEYS do
  local decided, answer = pcall(decideQuickly, KEYS[i], at)
  if not decided or not answer then
    decide = decide or makeDecide()
    decided, answer = pcall(decide, KEYS[i], at)
  end
  if not decided then
    answer = { FAILED, tostring(type(answer) == 'table' and answer.err or answer) }
  end
  answers[i + 1] = answer
  local kind = ARGV[at]
  at = at + (kind == 'claim' and 10 or kind == 'release' and 4 or kind == 'renew' and 7 or kind == 'evict' and 2 or 1)
end
return answers
`;

export const SCRIPT = compiled(HEAD_LUA + QUICK_LUA + MAIN_LUA);

/** What Redis calls the script, once it has seen it. */
export const SCRIPT_SHA = createHash('sha1').update(SCRIPT).digest('hex');
