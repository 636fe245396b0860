/** Where a receiver of requests keeps the highest token of each key. */
import type { Duration } from '../api.js';
import { durationMs } from '../protocol/durations.js';
import { InvalidArgumentError, LeaseLostError, StoreError } from '../protocol/errors.js';
import { checkOptionNames } from '../protocol/option-names.js';
import { monotonicMs } from '../time.js';
import { type Evaluate, redisGuard } from './redis.js';
import type { SqlGuard, SqlStatement } from './sql.js';

/** Keeps the highest token of each key, for `fencingCheck`. */
export interface FenceStore {
  /** Keeps the token if no higher one is kept for the key. False for a stale one. Atomic; the same token is not stale. */
  raise(key: string, token: number): boolean | Promise<boolean>;
}

/** Options of `memoryFences`. */
export interface MemoryFencesOptions {
  /** How long a key is kept after the last request that named it. Default one hour. */
  readonly keep?: Duration;
  /** The most keys kept. A key more is refused with a `StoreError`. Default 100,000. */
  readonly keysMax?: number;
}

interface Kept {
  readonly token: number;
  readonly usedMs: number;
}

/**
 * For a receiver that is one process; a restart forgets the tokens. So does `keep`: a holder that was paused for longer is
 * not refused, unless a later one has written since.
 */
export function memoryFences(options: MemoryFencesOptions = {}): FenceStore {
  checkOptionNames(options, ['keep', 'keysMax']);
  const { keep = '1h', keysMax = 100_000 } = options;
  if (!Number.isSafeInteger(keysMax) || keysMax < 1) {
    throw new InvalidArgumentError('keysMax is a whole number from 1.');
  }
  const keepMs = durationMs(keep, 'keep', 1, Number.POSITIVE_INFINITY);
  /** In the order of use. */
  const kept = new Map<string, Kept>();

  function forget(usedBeforeMs: number): void {
    for (const [key, { usedMs }] of kept) {
      if (usedMs >= usedBeforeMs) return;
      kept.delete(key);
    }
  }
  return {
    raise(key, token) {
      const usedMs = monotonicMs();
      forget(usedMs - keepMs);
      const highest = kept.get(key)?.token;
      if (highest === undefined && kept.size >= keysMax) {
        throw new StoreError(
          `The tokens of ${keysMax} keys are kept, and "${key}" is one more: raise keysMax, or lower keep.`,
          { key, operation: 'raise', outcome: 'not-executed' },
        );
      }
      const isStale = highest !== undefined && token < highest;
      kept.delete(key);
      kept.set(key, { token: isStale ? highest : token, usedMs });
      return !isStale;
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

/** Options of `redisFences`. */
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
