/**
 * Checks what a caller gives, once, at the door, and makes a frozen request of it. Whatever is wrong is an
 * `InvalidArgumentError` that says what to do, and nothing has been sent to the store.
 */
import type { AcquireOptions } from './api.js';
import type { Request } from './engine/request.js';
import { InvalidArgumentError } from './protocol/errors.js';
import { checkOptionNames } from './protocol/option-names.js';

const KEY_BYTES_MAX = 512;
const OWNER_BYTES_MAX = 256;
const METADATA_BYTES_MAX = 4_096;
const CAPACITY_MAX = 1_000_000;
export const TTL_MS_MIN = 10;
export const TTL_MS_MAX = 7 * 24 * 3_600_000;

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
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
const CONTROL = /\p{Cc}/u;
/** Needs no further look: most names are like this. */
const PLAIN = /^[ -~]{1,128}$/;

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

export function checkNamespace(namespace: unknown): string {
  if (typeof namespace === 'string' && /^[A-Za-z0-9_.-]{1,64}$/.test(namespace)) return namespace;
  throw new InvalidArgumentError(
    `The namespace ${show(namespace)} is not usable: take 1 to 64 letters, digits, dots, dashes or underscores.`,
  );
}

/** Two spellings of one letter are one key: names are compared in Unicode's normal form C. */
export function checkKey(key: unknown): string {
  return checkText(key, 'key', KEY_BYTES_MAX);
}

/** A prefix may be empty. */
export function checkPrefix(prefix: unknown): string {
  return prefix === undefined || prefix === '' ? '' : checkText(prefix, 'prefix', KEY_BYTES_MAX);
}

/** May be empty too. Left in the form it has: a key of other software could sort behind its own normal form, for ever. */
export function checkAfter(after: string): string {
  if (after !== '') checkText(after, 'key to list after', KEY_BYTES_MAX);
  return after;
}

export function checkOwner(owner: unknown): string {
  return checkText(owner, 'owner', OWNER_BYTES_MAX);
}

export function durationMs(value: unknown, name: string, minMs: number, maxMs: number): number {
  const ms = typeof value === 'string' ? parseDuration(value) : value;
  if (typeof ms === 'number' && ms >= minMs && ms <= maxMs) return Math.round(ms);
  const range =
    maxMs === Number.POSITIVE_INFINITY ? `at least ${minMs} ms` : `from ${minMs} ms to ${maxMs} ms`;
  throw new InvalidArgumentError(
    `${name} is ${show(value)}, but has to be a duration ${range}: milliseconds, or like '500ms', '30s', '5m', '1h'.`,
  );
}

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

function parseDuration(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? [];
  return Number(number) * (UNITS[unit ?? ''] ?? Number.NaN);
}

function checkText(text: unknown, what: string, bytesMax: number): string {
  const fail = (problem: string): never => {
    throw new InvalidArgumentError(`The ${what} ${show(text)} ${problem}`);
  };
  if (typeof text !== 'string') return fail('is not a string.');
  if (PLAIN.test(text)) return text;
  if (text === '') return fail('is empty: give it a name that says what is locked.');
  if (!text.isWellFormed()) return fail('is not valid Unicode: it has half of a surrogate pair.');
  if (CONTROL.test(text)) return fail('has control characters: leave them out.');
  const normal = text.normalize('NFC');
  if (Buffer.byteLength(normal) > bytesMax)
    return fail(`is longer than ${bytesMax} bytes: shorten or hash it.`);
  return normal;
}

function checkMetadata(metadata: unknown): string {
  if (!isPlainObject(metadata)) {
    throw new InvalidArgumentError(
      `metadata is ${show(metadata)}, but has to be an object that JSON can hold.`,
    );
  }
  let text: string | undefined;
  try {
    text = JSON.stringify(metadata);
  } catch (cause) {
    throw new InvalidArgumentError('metadata cannot be written as JSON: leave out cycles and bigints.', {
      cause,
    });
  }
  if (text === undefined)
    throw new InvalidArgumentError('metadata cannot be written as JSON: its toJSON gives nothing.');
  if (Buffer.byteLength(text) <= METADATA_BYTES_MAX) return text;
  throw new InvalidArgumentError(
    `metadata is longer than ${METADATA_BYTES_MAX} bytes of JSON: store a reference instead.`,
  );
}

function checkFlag(value: unknown, name: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new InvalidArgumentError(`${name} is ${show(value)}, but has to be true or false.`);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= CAPACITY_MAX;
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

export function checkSignal(signal: unknown): void {
  if (signal === undefined || signal instanceof AbortSignal) return;
  throw new InvalidArgumentError(`signal is ${show(signal)}, but has to be an AbortSignal.`);
}

/** Short, and safe to print. */
function show(value: unknown): string {
  const isPrimitive = value === null || !['object', 'function'].includes(typeof value);
  // An object's own way of showing itself may be missing, or throw.
  const other = isPrimitive ? String(value) : Object.prototype.toString.call(value);
  const text = typeof value === 'string' ? JSON.stringify(value) : other;
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
