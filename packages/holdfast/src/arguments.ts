/**
 * Checks the arguments of a call, once, and makes a request from them. A wrong argument is an `InvalidArgumentError` that
 * says what to do; nothing has been sent to the store then.
 */
import type { AcquireOptions } from './api.js';
import type { LeaseRequest } from './lease/lease-request.js';
import { durationMs, TTL_MS_MAX, TTL_MS_MIN } from './protocol/durations.js';
import { InvalidArgumentError } from './protocol/errors.js';
import { checkKey, checkMetadata, checkOwner, isPlainText, show } from './protocol/names.js';
import { checkOptionNames } from './protocol/option-names.js';
import type { Permits } from './queue/request.js';

/** Only for the list in messages: `withLock` has removed this option before the check. */
const WORK_OPTION = 'reentrant (of withLock and tryWithLock)';

export const OPTION_NAMES: readonly string[] = [
  'ttl',
  'wait',
  'signal',
  'owner',
  'metadata',
  'renew',
  'minHold',
  'maxHold',
  'queue',
];
const KNOWN_OPTIONS: ReadonlySet<string> = new Set(OPTION_NAMES);
const NO_OPTIONS: AcquireOptions = {};

export interface Defaults {
  /** The beginning of every key at the store: the namespace and a slash. */
  readonly prefix: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly waitMs: number;
}

/** `waitMs`: the default of the option `wait`. */
export function requestOf(
  key: unknown,
  options: AcquireOptions | undefined,
  { permits, capacity }: Permits,
  defaults: Defaults,
  waitMs: number,
  known: ReadonlySet<string> = KNOWN_OPTIONS,
): LeaseRequest {
  const { prefix } = defaults;
  // Checked as a whole: stores look it up several times, and that is faster in one string than in a joined one.
  const whole = typeof key === 'string' ? prefix + key : prefix;
  const isPlain = isPlainText(whole, prefix.length);
  const name = isPlain ? (key as string) : checkKey(key);
  if (options !== undefined && !areKnown(options, known)) checkOptionNames(options, [...known, WORK_OPTION]);
  const { signal, metadata, owner, ttl, wait, minHold, maxHold, renew, queue } = options ?? NO_OPTIONS;
  if (signal !== undefined) checkSignal(signal);
  return {
    key: isPlain ? whole : prefix + name,
    name,
    owner: owner === undefined ? defaults.owner : checkOwner(owner),
    permits,
    capacity,
    ttlMs: ttl === undefined ? defaults.ttlMs : durationMs(ttl, 'ttl', TTL_MS_MIN, TTL_MS_MAX),
    waitMs: wait === undefined ? waitMs : durationMs(wait, 'wait', 0, Number.POSITIVE_INFINITY),
    minHoldMs: minHold === undefined ? 0 : durationMs(minHold, 'minHold', 0, TTL_MS_MAX),
    maxHoldMs:
      maxHold === undefined
        ? Number.POSITIVE_INFINITY
        : durationMs(maxHold, 'maxHold', TTL_MS_MIN, Number.POSITIVE_INFINITY),
    queue: queue === undefined || checkFlag(queue, 'queue'),
    renew: renew === undefined || checkFlag(renew, 'renew'),
    metadata: metadata === undefined ? null : checkMetadata(metadata),
    signal,
    hold: null,
  };
}

/** The fast path: plain options with known names, without a list of names. */
function areKnown(options: object, known: ReadonlySet<string>): boolean {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) return false;
  for (const name in options) if (!known.has(name)) return false;
  return true;
}

/** For a call with several keys: checks the names of its options, and returns how long it waits for all keys. */
export function waitMsOf(options: AcquireOptions | undefined, defaultMs: number): number {
  const { wait = defaultMs } = checkOptionNames(options ?? NO_OPTIONS, OPTION_NAMES);
  return durationMs(wait, 'wait', 0, Number.POSITIVE_INFINITY);
}

export function checkFlag(value: unknown, name: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new InvalidArgumentError(`${name} is ${show(value)}, but has to be true or false.`);
}

export function checkSignal(signal: unknown): void {
  if (signal === undefined || signal instanceof AbortSignal) return;
  throw new InvalidArgumentError(`signal is ${show(signal)}, but has to be an AbortSignal.`);
}
