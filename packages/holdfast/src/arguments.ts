/**
 * Checks what a caller gives, once, at the door, and makes a frozen request of it. Whatever is wrong is an
 * `InvalidArgumentError` that says what to do, and nothing has been sent to the store.
 */
import type { AcquireOptions } from './api.js';
import type { Request } from './engine/request.js';
import { durationMs, TTL_MS_MAX, TTL_MS_MIN } from './protocol/durations.js';
import { InvalidArgumentError } from './protocol/errors.js';
import { checkKey, checkMetadata, checkOwner, show } from './protocol/names.js';
import { checkOptionNames } from './protocol/option-names.js';

export { durationMs, TTL_MS_MAX, TTL_MS_MIN } from './protocol/durations.js';
export { checkAfter, checkKey, checkNamespace, checkOwner, checkPrefix } from './protocol/names.js';

const CAPACITY_MAX = 1_000_000;
export const OPTION_NAMES: readonly string[] = [
  'ttl',
  'wait',
  'signal',
  'owner',
  'metadata',
  'renew',
  'minHold',
  'queue',
];
const NO_OPTIONS: AcquireOptions = {};

export interface Defaults {
  /** What keys begin with at the store: the namespace and a slash. */
  readonly prefix: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly waitMs: number;
}

export interface Wants {
  readonly permits: number;
  readonly capacity: number;
}

export const ALONE: Wants = { permits: 1, capacity: 1 };

export function checkWants(permits: unknown, capacity: unknown): Wants {
  if (!isCount(capacity)) {
    throw new InvalidArgumentError(
      `capacity is ${show(capacity)}, but has to be a whole number from 1 to ${CAPACITY_MAX}.`,
    );
  }
  if (!isCount(permits) || permits > capacity) {
    throw new InvalidArgumentError(
      `permits is ${show(permits)}, but has to be a whole number from 1 to the capacity, ${capacity}.`,
    );
  }
  return { permits, capacity };
}

/** `waitMs` is what counts when the call names no wait. */
export function requestOf(
  key: unknown,
  options: AcquireOptions | undefined,
  { permits, capacity }: Wants,
  defaults: Defaults,
  waitMs: number,
  optionNames: readonly string[] = OPTION_NAMES,
): Request {
  const name = checkKey(key);
  const given = checkOptions(options ?? NO_OPTIONS, optionNames);
  const { signal, metadata, owner, ttl, wait, minHold, renew = true, queue = true } = given;
  checkSignal(signal);
  return {
    key: defaults.prefix + name,
    name,
    owner: owner === undefined ? defaults.owner : checkOwner(owner),
    permits,
    capacity,
    ttlMs: ttl === undefined ? defaults.ttlMs : durationMs(ttl, 'ttl', TTL_MS_MIN, TTL_MS_MAX),
    waitMs: wait === undefined ? waitMs : durationMs(wait, 'wait', 0, Number.POSITIVE_INFINITY),
    minHoldMs: minHold === undefined ? 0 : durationMs(minHold, 'minHold', 0, TTL_MS_MAX),
    queue: checkFlag(queue, 'queue'),
    renew: checkFlag(renew, 'renew'),
    metadata: metadata === undefined ? null : checkMetadata(metadata),
    signal,
  };
}

export function checkOptions<O extends object>(options: O, known: readonly string[]): O {
  checkOptionNames(options, known);
  return options;
}

function checkFlag(value: unknown, name: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new InvalidArgumentError(`${name} is ${show(value)}, but has to be true or false.`);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= CAPACITY_MAX;
}

export function checkSignal(signal: unknown): void {
  if (signal === undefined || signal instanceof AbortSignal) return;
  throw new InvalidArgumentError(`signal is ${show(signal)}, but has to be an AbortSignal.`);
}
