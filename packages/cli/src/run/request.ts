/** The locks of a command: their options are checked before any command is sent to a store; then they are acquired. */
import {
  type AcquireOptions,
  AcquireTimeoutError,
  HoldfastError,
  type KeyInfo,
  type Lease,
  type LeaseGroup,
  type Locks,
  type Metadata,
} from 'holdfast';
import { TTL_MS_MAX, TTL_MS_MIN } from 'holdfast/protocol';
import { EXIT, Failure, usageFailure } from '../failure.js';
import type { Invocation } from '../options/invocation.js';
import type { OptionName, Options } from '../options/options.js';
import { formatDuration, holderJson, holdersText } from '../printing/describe.js';
import { printable, quote } from '../printing/terminal.js';
import { type Held, heldOf } from './held.js';

const TTL_MS = 30_000;
const WAIT_MS = 10_000;
const CAPACITY_MAX = 1_000_000;
const GRACE_MS_MAX = 5_000;
const TICK_MS_MIN = 1_000;
const TICK_MS_MAX = 6 * 86_400_000;

export interface LockRequest {
  /** At least one. */
  readonly keys: readonly string[];
  readonly acquire: AcquireOptions;
  readonly waitMs: number;
  readonly shared: boolean;
  /** Null for a plain lock. */
  readonly capacity: number | null;
  readonly permits: number;
}

export interface RunRequest extends LockRequest {
  readonly commandLine: readonly string[];
  readonly graceMs: number;
  /** After this time the command is ended. Infinity for no limit. */
  readonly maxHoldMs: number;
  /** The command runs once per this time. Null for no schedule. */
  readonly tickMs: number | null;
}

export function readRequest(invocation: Invocation): RunRequest {
  const { options, commandLine } = invocation;
  const ttlMs = ttlOf(options) ?? TTL_MS;
  const tickMs = options.durationMs('tick') ?? null;
  if (tickMs !== null && (tickMs < TICK_MS_MIN || tickMs > TICK_MS_MAX))
    throw usageFailure('--tick must be from 1s to 6d');
  refuseTogether(options, 'tick', ['capacity', 'shared', 'key']);
  const graceMs = graceOf(options.durationMs('grace'), ttlMs);
  const maxHoldMs = options.durationMs('max-hold') ?? Number.POSITIVE_INFINITY;
  if (maxHoldMs <= graceMs)
    throw usageFailure(`--max-hold must be longer than --grace, which is ${formatDuration(graceMs)}`);
  const request = readLockRequest(invocation, programOf(commandLine));
  return {
    ...request,
    acquire: { ...request.acquire, ...(options.has('max-hold') && { maxHold: maxHoldMs }) },
    commandLine,
    graceMs,
    maxHoldMs,
    tickMs,
  };
}

/** `metadata`: default metadata of the command; that of the user comes first. */
export function readLockRequest({ operands, options }: Invocation, metadata: Metadata = {}): LockRequest {
  const waitMs = options.durationMs('wait') ?? WAIT_MS;
  const minHoldMs = options.durationMs('min-hold');
  if ((minHoldMs ?? 0) > TTL_MS_MAX) throw usageFailure('--min-hold must be at most 7d');
  const owner = options.text('owner');
  const notes = { ...metadata, ...metadataOf(options) };
  const capacity = options.count('capacity', CAPACITY_MAX) ?? null;
  const permits = options.count('permits', CAPACITY_MAX) ?? 1;
  if (capacity === null && options.has('permits')) throw usageFailure('--permits needs --capacity');
  if (capacity !== null && permits > capacity) {
    throw usageFailure(`--permits ${permits} is more than --capacity ${capacity}`);
  }
  refuseTogether(options, 'shared', ['capacity']);
  const keys = [...new Set([...operands, ...options.texts('key')])];
  if (keys.length > 1) refuseTogether(options, 'key', ['shared', 'capacity']);
  return {
    keys,
    acquire: {
      ttl: ttlOf(options) ?? TTL_MS,
      wait: waitMs,
      ...(owner === undefined ? {} : { owner }),
      ...(minHoldMs === undefined ? {} : { minHold: minHoldMs }),
      ...(Object.keys(notes).length > 0 && { metadata: notes }),
    },
    waitMs,
    shared: options.has('shared'),
    capacity,
    permits,
  };
}

export function ttlOf(options: Options): number | undefined {
  const ttlMs = options.durationMs('ttl');
  if (ttlMs === undefined) return undefined;
  if (ttlMs <= 0) throw usageFailure('--ttl must be longer than 0');
  if (ttlMs < TTL_MS_MIN || ttlMs > TTL_MS_MAX) throw usageFailure('--ttl must be from 10ms to 7d');
  return ttlMs;
}

function refuseTogether(options: Options, one: OptionName, others: readonly OptionName[]): void {
  const other = options.has(one) && others.find((name) => options.has(name));
  if (other) throw usageFailure(`--${one} cannot be combined with --${other}`);
}

/** The program without its arguments, which may have passwords: everybody who inspects the key would read them. */
function programOf(commandLine: readonly string[]): Metadata {
  const [program = ''] = commandLine;
  return { command: program.slice(program.lastIndexOf('/') + 1).slice(0, PROGRAM_MAX) };
}

const PROGRAM_MAX = 64;

function metadataOf(options: Options): Metadata {
  const pairs = options.texts('metadata').map((text) => {
    const at = text.indexOf('=');
    if (at > 0) return [text.slice(0, at), text.slice(at + 1)] as const;
    throw usageFailure(`--metadata: ${quote(text)} has no name; write it as NAME=TEXT`);
  });
  return Object.fromEntries(pairs);
}

/** Renewal starts when two thirds of the ttl are left: a grace near that time would end commands with healthy leases. */
function graceOf(givenMs: number | undefined, ttlMs: number): number {
  if (givenMs === undefined) return Math.min(GRACE_MS_MAX, ttlMs / 4);
  if (givenMs > ttlMs / 2) {
    const half = formatDuration(ttlMs / 2);
    throw usageFailure(`--grace ${formatDuration(givenMs)} is more than half of the ttl (${half})`);
  }
  return givenMs;
}

export async function acquire(locks: Locks, request: LockRequest, signal: AbortSignal): Promise<Held> {
  try {
    return heldOf(await ask(locks, request, signal));
  } catch (error) {
    throw error instanceof AcquireTimeoutError ? await notAcquired(locks, request, error) : error;
  }
}

function ask(locks: Locks, request: LockRequest, signal: AbortSignal): Promise<Lease | LeaseGroup> {
  const { keys, shared, capacity, permits } = request;
  const options = { ...request.acquire, signal };
  const [key = ''] = keys;
  if (keys.length > 1) return locks.all(keys).acquire(options);
  if (shared) return locks.readWrite(key).read.acquire(options);
  if (capacity !== null) return locks.semaphore(key, { capacity }).acquire({ ...options, permits });
  return locks.acquire(key, options);
}

/** Reads the key again, for the store's time. If nobody holds it by now, names the holders of the error. */
async function notAcquired(locks: Locks, request: LockRequest, error: AcquireTimeoutError): Promise<Failure> {
  const [first = ''] = request.keys;
  const key = error.key ?? first;
  const info = await inspect(locks, key);
  const when = request.waitMs === 0 ? '' : ` within ${formatDuration(request.waitMs)}`;
  const last = error.holders.map(({ owner }) => printable(owner)).join(', ');
  let who = last === '' ? 'others wait for it' : `it was held by ${last}`;
  if (info && info.holders.length > 0) who = `held by ${holdersText(info)}`;
  const holders = (info?.holders ?? error.holders).map(holderJson);
  return new Failure(EXIT.notAcquired, `could not acquire ${quote(key)}${when}: ${who}`, {
    code: error.code,
    key,
    holders,
  });
}

/** Null when the store fails now, because the outcome is known already: the lock was not acquired. */
async function inspect(locks: Locks, key: string): Promise<KeyInfo | null> {
  try {
    return await locks.inspect(key);
  } catch (error) {
    if (error instanceof HoldfastError) return null;
    throw error;
  }
}
