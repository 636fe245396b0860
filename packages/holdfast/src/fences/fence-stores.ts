/** Where a receiver of requests keeps the highest token of each key. */
import { InvalidArgumentError, LeaseLostError } from '../protocol/errors.js';
import { checkOptionNames } from '../protocol/option-names.js';
import { type Evaluate, redisGuard } from './redis.js';
import type { SqlGuard, SqlStatement } from './sql.js';

export interface FenceStore {
  /** Keeps the token if no higher one is kept for the key. False for a stale one. Atomic; the same token is not stale. */
  raise(key: string, token: number): boolean | Promise<boolean>;
}

export interface MemoryFencesOptions {
  /** The most keys kept. Default 100,000. */
  readonly keysMax?: number;
}

/**
 * For a receiver that is one process; a restart forgets the tokens. Beyond `keysMax` the key that was used longest ago is
 * forgotten. Its token is then the lowest that any unknown key accepts, so that a stale one is still refused.
 */
export function memoryFences(options: MemoryFencesOptions = {}): FenceStore {
  checkOptionNames(options, ['keysMax']);
  const { keysMax = 100_000 } = options;
  if (!Number.isSafeInteger(keysMax) || keysMax < 1) {
    throw new InvalidArgumentError('keysMax is a whole number from 1.');
  }
  const highest = new Map<string, number>();
  let forgotten = 0;
  return {
    raise(key, token) {
      if (token < (highest.get(key) ?? forgotten)) return false;
      highest.delete(key);
      highest.set(key, token);
      const [oldest] = highest;
      if (oldest && highest.size > keysMax) {
        highest.delete(oldest[0]);
        forgotten = Math.max(forgotten, oldest[1]);
      }
      return true;
    },
  };
}

/** In the guard table of `sqlGuard`. `run` runs a statement, and resolves with the number of rows that it changed. */
export function sqlFences(
  guard: SqlGuard,
  run: (statement: SqlStatement) => Promise<number | bigint>,
): FenceStore {
  return {
    async raise(key, token) {
      if ((await run(guard.raise(key, token))) > 0) return true;
      // Stale, or the first token of this key in MySQL.
      await run(guard.createRow(key));
      return (await run(guard.raise(key, token))) > 0;
    },
  };
}

export interface RedisFencesOptions {
  /** The prefix of the Redis keys. Default `fence:`. */
  readonly prefix?: string;
}

/** In Redis, one key each. `evaluate` is as for `redisGuard`. */
export function redisFences(evaluate: Evaluate, options: RedisFencesOptions = {}): FenceStore {
  checkOptionNames(options, ['prefix']);
  const { prefix = 'fence:' } = options;
  const guard = redisGuard('return 1');
  return {
    async raise(key, token) {
      try {
        await guard.write(evaluate, { fence: prefix + key, token });
        return true;
      } catch (error) {
        if (error instanceof LeaseLostError) return false;
        throw error;
      }
    },
  };
}
