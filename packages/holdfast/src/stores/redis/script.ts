/**
 * The script that runs inside Redis, and how it is called: `decide` in Lua, applied to one or more commands.
 *
 *   KEYS[i]   the key of the ith command
 *   ARGV      the commands, as encoder.ts encodes them
 *
 * The answer is the server's time, then one answer per command: a list that begins with a code of lua/layout.ts, or a
 * number for a usual command. Where all of these are 0, the time is the whole answer. Every command is decided under
 * `pcall`, so that an error fails one command only. The write is the last step before the wake-ups, so a command that
 * fails before it has changed nothing. If the server forbids publishing, the wake-up is lost: waiters poll as well.
 *
 * The script is called by its hash. A server that does not know the hash (after a restart, a flush, a failover) answers
 * NOSCRIPT before it executes anything, and then gets the text. That is not a retry, because nothing was executed.
 */
import { createHash } from 'node:crypto';
import { UnsupportedError } from '../../protocol/index.js';
import { notExecuted } from '../clients/errors.js';
import type { Connection } from './connection.js';
import { COMMANDS_LUA } from './lua/commands.js';
import { compiled } from './lua/layout.js';
import { QUEUE_LUA } from './lua/queue.js';
import { RECORD_LUA } from './lua/record.js';
import { ANSWER_LUA, COMMAND_LUA, USUAL_LUA } from './lua/usual.js';

const HEAD_LUA = `
local time = redis.call('TIME')
local milliseconds = time[2] / 1000
local now = time[1] * 1000 + (milliseconds - milliseconds % 1)
`;

const DECIDE_LUA = `
local function doOthersWait()
  for i = 1, #waiters do
    if kind == EVICT or waiters[i][PROCESS] ~= process then return 1 end
  end
  return 0
end

local function publish(key, channel, why)
  redis.pcall('PUBLISH', channel, why .. ':' .. key)
end

-- Waiters woken by this command that still queue, and waiters woken before that have not come yet.
local function sendWakeUps(key)
  if wakes then
    for i = 1, #wakes, 2 do publish(key, wakes[i], wakes[i + 1]) end
  end
  for i = 1, #waiters do
    local waiter = waiters[i]
    if waiter[INBOX] and (woken and woken[waiter] or isOverdue(waiter)) then
      publish(key, waiter[INBOX], 'turn')
    end
  end
end

local answerTo = { [CLAIM] = claim, [RENEW] = renew, [RELEASE] = release, [EVICT] = evict }

return function(key)
  local text = parse()
  local refusal = load(key)
  if refusal then return refusal end
  if kind == READ then return { RECORD, token, decision, holders, rests, waiters, ended, evictions } end
  local head = waiters[1]
  sweep()
  if #waiters > 0 then wakeNext() end
  local answer = answerTo[kind](text)
  if #waiters > 0 then wakeNext() end
  -- A waiter that comes to the head during a rest has to learn how long the rest is: nothing else wakes it.
  local first = waiters[1]
  if #rests > 0 and head and first and not isSame(first, head[PROCESS], head[NUMBER]) then wakeWaiter(first) end
  if changed then
    decision = rise(decision)
    save(key)
  end
  answer[2] = decision
  if #waiters > 0 then answer[3] = doOthersWait() end
  if wakes or #waiters > 0 then sendWakeUps(key) end
  return answer
end
`;

const MAIN_LUA = `
local decide
while at <= #KEYS do
  pcall(decideUsual)
  if at <= #KEYS then
    -- Created when it is needed, because creating its functions takes longer than most commands.
    decide = decide or (function()
${COMMAND_LUA}${RECORD_LUA}${QUEUE_LUA}${COMMANDS_LUA}${DECIDE_LUA}
    end)()
    local decided, value = pcall(decide, KEYS[at])
    if not decided then
      local message = tostring(type(value) == 'table' and value.err or value)
      -- Redis before 7 puts the place in the script before some of its errors.
      message = string.gsub(message, '^@user_script: %d+: %-', '')
      -- A replica writes nothing, so nothing was decided. Clients that look for the master need this error as it is.
      if string.find(message, '^READONLY') then return { err = message } end
      value = { FAILED, message }
    end
    ${ANSWER_LUA}
    at = at + 1
  end
end
return answers or now
`;

export const SCRIPT = compiled(HEAD_LUA + USUAL_LUA + MAIN_LUA);

/** The keys have no prefix of the client. */
export type Call = <T>(
  keys: readonly string[],
  words: readonly string[],
  decode: (reply: unknown) => T,
) => Promise<T>;

/** Calls a script by its hash, and by its text if the server does not know the hash. */
export function scriptCall(connection: Connection, script: string): Call {
  const sha = createHash('sha1').update(script).digest('hex');
  const { offlineGuard } = connection;

  /** A client that throws has sent nothing of this call; the other calls of the batch go on. */
  function attempt(keys: readonly string[], words: readonly string[]): Promise<unknown> {
    const send = (): Promise<unknown> => connection.run('evalsha', sha, keys, words);
    try {
      return offlineGuard && !offlineGuard.isReady ? offlineGuard.wait().then(send) : send();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  const refuse = (error: unknown): never => {
    throw explained(error, connection);
  };
  return (keys, words, decode) =>
    attempt(keys, words).then(decode, (error: unknown) => {
      if (!startsWith(error, 'NOSCRIPT')) return refuse(error);
      return connection.run('eval', script, keys, words).then(decode, refuse);
    });
}

export function scriptRunner(
  connection: Connection,
  script: string,
): (keys: readonly string[], words: readonly string[]) => Promise<unknown> {
  const call = scriptCall(connection, script);
  return (keys, words) => call(keys, words, (reply) => reply);
}

function startsWith(error: unknown, word: string): boolean {
  return error instanceof Error && error.message.startsWith(word);
}

/** A node that redirects has executed nothing. */
function explained(error: unknown, { isCluster }: Connection): unknown {
  if (isCluster || !(startsWith(error, 'MOVED') || startsWith(error, 'CROSSSLOT')))
    return notExecuted(error) ?? error;
  return new UnsupportedError(
    'This server is part of a Redis Cluster, and the client is for a single server. ' +
      'Use Cluster of ioredis, or createCluster of node-redis.',
    { cause: error },
  );
}
