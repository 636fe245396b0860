/** What `run` is asked for, checked before anything is sent to a store. */
import type { AcquireOptions } from 'holdfast';
import { formatDuration } from './duration.js';
import { usageFailure } from './exit.js';
import type { Invocation } from './options.js';

const TTL_MS = 30_000;
const WAIT_MS = 10_000;
/** What the library takes. */
const TTL_MS_MIN = 10;
const TTL_MS_MAX = 168 * 3_600_000;
const CAPACITY_MAX = 1_000_000;
const GRACE_MS_MAX = 5_000;

export interface RunRequest {
  readonly key: string;
  readonly commandLine: readonly string[];
  readonly acquire: AcquireOptions;
  readonly waitMs: number;
  /** Null for a plain lock. */
  readonly capacity: number | null;
  readonly permits: number;
  readonly graceMs: number;
}

export function readRequest({ operands, commandLine, options }: Invocation): RunRequest {
  const ttlMs = options.durationMs('ttl') ?? TTL_MS;
  if (ttlMs <= 0) throw usageFailure('--ttl must be longer than 0');
  if (ttlMs < TTL_MS_MIN || ttlMs > TTL_MS_MAX)
    throw usageFailure('--ttl must be from 10ms to 168h (7 days)');
  const waitMs = options.durationMs('wait') ?? WAIT_MS;
  const minHoldMs = options.durationMs('min-hold');
  if ((minHoldMs ?? 0) > TTL_MS_MAX) throw usageFailure('--min-hold must be at most 168h (7 days)');
  const owner = options.text('owner');
  const capacity = options.count('capacity', CAPACITY_MAX) ?? null;
  const permits = options.count('permits', CAPACITY_MAX) ?? 1;
  if (capacity === null && options.has('permits')) throw usageFailure('--permits needs --capacity');
  if (capacity !== null && permits > capacity) {
    throw usageFailure(`--permits ${permits} is more than --capacity ${capacity}`);
  }
  return {
    key: operands[0] ?? '',
    commandLine,
    acquire: {
      ttl: ttlMs,
      wait: waitMs,
      ...(owner === undefined ? {} : { owner }),
      ...(minHoldMs === undefined ? {} : { minHold: minHoldMs }),
    },
    waitMs,
    capacity,
    permits,
    graceMs: graceOf(options.durationMs('grace'), ttlMs),
  };
}

/** Renewal starts when two thirds of the ttl are left: a grace near that would end commands whose lease is well. */
function graceOf(givenMs: number | undefined, ttlMs: number): number {
  if (givenMs === undefined) return Math.min(GRACE_MS_MAX, ttlMs / 4);
  if (givenMs > ttlMs / 2) {
    const half = formatDuration(ttlMs / 2);
    throw usageFailure(`--grace ${formatDuration(givenMs)} is more than half of the ttl (${half})`);
  }
  return givenMs;
}
