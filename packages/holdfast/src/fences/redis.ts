/**
 * Makes Redis refuse a stale token. It generates a script; it opens no connection and imports no client.
 *
 * Your write is a piece of Lua. Before it, in the same script and so atomically, the token is compared with the highest
 * that wrote, which is kept under a key beside the resource: the fence. A lower token writes nothing.
 *
 * The same token may write any number of times. The fence belongs to the resource and lives as long: delete both
 * together. On Cluster the fence and the keys need one hash tag, such as `{ann}:fence` and `{ann}:amount`.
 */
import { InvalidArgumentError } from '../protocol/errors.js';
import { show } from '../protocol/names.js';
import { checkToken, staleError } from './token.js';

/** A write that `redisGuard` checks. */
export interface GuardedWrite {
  /** The key that keeps the highest token. */
  readonly fence: string;
  readonly token: number;
  /** `KEYS` of your script. */
  readonly keys?: readonly string[];
  /** `ARGV` of your script. */
  readonly args?: readonly (string | number)[];
}

/** Runs a script with your client: `EVAL` with these keys and arguments. */
export type Evaluate = (script: string, keys: string[], args: string[]) => Promise<unknown>;

/** Runs a script in Redis only if its token is not stale. */
export interface RedisGuard {
  /** The whole script, for clients that load scripts: the fence is `KEYS[1]`, the token `ARGV[1]`. */
  readonly script: string;
  /** Returns the result of your script; throws `LeaseLostError`, with nothing written, when a later holder has written. */
  write(evaluate: Evaluate, what: GuardedWrite): Promise<unknown>;
}

const STALE = 'HOLDFAST_STALE';

/** `lua` is your write, with its own `KEYS` and `ARGV` from 1. */
export function redisGuard(lua: string): RedisGuard {
  if (typeof lua !== 'string' || lua.trim() === '') {
    throw new InvalidArgumentError(
      "The guard needs the Lua of your write, such as `return redis.call('SET', KEYS[1], ARGV[1])`.",
    );
  }
  // Not by unpack, which fails for some thousands.
  const script = `local function write(KEYS, ARGV)
${lua}
end
local function rest(list)
  local others = {}
  for at = 2, #list do others[at - 1] = list[at] end
  return others
end
local highest = tonumber(redis.call('GET', KEYS[1]) or 0)
if highest == nil then return redis.error_reply('The fence ' .. KEYS[1] .. ' holds an invalid token.') end
if highest > tonumber(ARGV[1]) then return redis.error_reply('${STALE} a later holder has written') end
redis.call('SET', KEYS[1], ARGV[1])
return write(rest(KEYS), rest(ARGV))
`;
  return {
    script,
    async write(evaluate, { fence, token, keys = [], args = [] }) {
      checkToken(token);
      if (typeof fence !== 'string' || fence === '') {
        throw new InvalidArgumentError('The fence is the name of a key: a string that is not empty.');
      }
      const texts = args.map(textOf);
      try {
        return await evaluate(script, [fence, ...keys], [String(token), ...texts]);
      } catch (cause) {
        if (!(cause instanceof Error) || !cause.message.includes(STALE)) throw cause;
        throw staleError(token, cause);
      }
    },
  };
}

function textOf(arg: unknown): string {
  if (typeof arg === 'string' || typeof arg === 'number') return String(arg);
  throw new InvalidArgumentError(`An argument of the script is a text or a number, not ${show(arg)}.`);
}
