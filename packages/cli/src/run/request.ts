/** The lock that `run` is asked for: checked before anything is sent to a store, and then acquired. */
import {
  type AcquireOptions,
  AcquireTimeoutError,
  HoldfastError,
  type KeyInfo,
  type Lease,
  type Locks,
} from 'holdfast';
import { TTL_MS_MAX, TTL_MS_MIN } from 'holdfast/protocol';
import { EXIT, Failure, usageFailure } from '../failure.js';
import type { Invocation } from '../options/invocation.js';
import { formatDuration, holderJson, holdersText } from '../printing/describe.js';
import { printable } from '../printing/terminal.js';

const TTL_MS = 30_000;
const WAIT_MS = 10_000;
const CAPACITY_MAX = 1_000_000;
const GRACE_MS_MAX = 5_000;
const TICK_MS_MIN = 1_000;
const TICK_MS_MAX = 6 * 24 * 3_600_000;

export interface RunRequest {
  readonly key: string;
  readonly commandLine: readonly string[];
  readonly acquire: AcquireOptions;
  readonly waitMs: number;
  /** Null for a plain lock. */
  readonly capacity: number | null;
  readonly permits: number;
  readonly graceMs: number;
  /** Null unless the command is to run once per this time. */
  readonly tickMs: number | null;
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
  const tickMs = options.durationMs('tick') ?? null;
  if (tickMs !== null && (tickMs < TICK_MS_MIN || tickMs > TICK_MS_MAX))
    throw usageFailure('--tick must be from 1s to 144h (6 days)');
  if (tickMs !== null && capacity !== null) throw usageFailure('--tick cannot be combined with --capacity');
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
    tickMs,
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

export async function acquire(locks: Locks, request: RunRequest, signal: AbortSignal): Promise<Lease> {
  const options = { ...request.acquire, signal };
  try {
    if (request.capacity === null) return await locks.acquire(request.key, options);
    const { capacity, permits } = request;
    return await locks.semaphore(request.key, { capacity }).acquire({ ...options, permits });
  } catch (error) {
    throw error instanceof AcquireTimeoutError ? await notAcquired(locks, request, error) : error;
  }
}

/** The error has the holders' names only, so the key is read again. By now another may hold it, or nobody. */
async function notAcquired(locks: Locks, request: RunRequest, error: AcquireTimeoutError): Promise<Failure> {
  const info = await inspect(locks, request.key);
  const key = `"${printable(request.key)}"`;
  const when = request.waitMs === 0 ? '' : ` within ${formatDuration(request.waitMs)}`;
  const last = error.holders.map(printable).join(', ');
  let who = last === '' ? 'others wait for it' : `it was held by ${last}`;
  if (info && info.holders.length > 0) who = `held by ${holdersText(info)}`;
  const holders = (info?.holders ?? []).map(holderJson);
  return new Failure(EXIT.notAcquired, `could not acquire ${key}${when}: ${who}`, {
    code: error.code,
    key: request.key,
    holders,
  });
}

/** Null when the store fails now: the lock was not acquired, whatever the store says about its holders. */
async function inspect(locks: Locks, key: string): Promise<KeyInfo | null> {
  try {
    return await locks.inspect(key);
  } catch (error) {
    if (error instanceof HoldfastError) return null;
    throw error;
  }
}
