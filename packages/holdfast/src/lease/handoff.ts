/**
 * A lease as text, to be given to another process: a list in JSON, in base64url without padding. So the text begins with a
 * letter, and has no character that is special in a shell, an environment or a URL. With the text, anybody can hold the
 * lock: it is never shown, and no error repeats any part of it.
 *
 * The last item of the list is a checksum over the others. Without it, one wrong character could make a higher token, and
 * a guard that gets such a token refuses all later holders. The checksum does not prove who made the text.
 */
import { createHash } from 'node:crypto';
import { durationMs, TTL_MS_MAX, TTL_MS_MIN } from '../protocol/durations.js';
import { InvalidArgumentError, UnsupportedError } from '../protocol/errors.js';
import { checkKey, checkNamespace, checkOwner } from '../protocol/names.js';
import type { HoldId } from '../protocol/state.js';
import { checkPermits } from '../queue/request.js';
import type { LeaseRequest } from './lease-request.js';

/** The first item of the list. A library refuses texts with a higher version. */
const HANDOFF_VERSION = 1;

/** The facts of a lease that one process hands to the other. */
export interface HandedOff {
  readonly id: HoldId;
  readonly request: LeaseRequest;
  readonly token: number;
  /** By the store's clock. */
  readonly acquiredAt: number;
}

export function handoffText({ id, request, token, acquiredAt }: HandedOff): string {
  const { key, owner, permits, capacity, ttlMs, minHoldMs, maxHoldMs, renew, metadata } = request;
  const lease = [HANDOFF_VERSION, key, id.process, id.number, token, acquiredAt];
  const fields = [...lease, owner, permits, capacity, ttlMs, minHoldMs, renew, metadata, maxHoldMs];
  return Buffer.from(JSON.stringify([...fields, checksumOf(fields)])).toString('base64url');
}

function checksumOf(fields: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(fields)).digest('base64url').slice(0, 8);
}

/** Checks a text as strictly as any other argument. `prefix`: the namespace that it has to be of, and a slash. */
export function readHandoff(text: unknown, prefix: string): HandedOff {
  const handed = read(text);
  const { key } = handed.request;
  if (key.startsWith(prefix)) return handed;
  const [namespace] = key.split('/');
  throw new InvalidArgumentError(
    `The lease was handed off in the namespace "${namespace}", and these locks are of "${prefix.slice(0, -1)}". ` +
      'Adopt it with locks of its own namespace, on the same store.',
  );
}

function read(text: unknown): HandedOff {
  try {
    return handedOffOf(fieldsOf(text));
  } catch (error) {
    // Not passed on: these errors repeat a part of the text.
    if (error instanceof InvalidArgumentError || error instanceof SyntaxError) throw damaged();
    throw error;
  }
}

/** The list without its checksum. */
function fieldsOf(text: unknown): readonly unknown[] {
  // Without this check, Node skips characters that are not base64url, and reads a damaged text as another one.
  if (typeof text !== 'string' || !/^[A-Za-z0-9_-]+$/.test(text)) throw damaged();
  const fields: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
  if (!Array.isArray(fields)) throw damaged();
  const [version] = fields;
  // A newer library may compute the checksum in another way.
  if (typeof version === 'number' && version > HANDOFF_VERSION) throw newerError(version);
  const summed = fields.slice(0, -1);
  if (checksumOf(summed) !== fields.at(-1)) throw damaged();
  return summed;
}

function handedOffOf(fields: readonly unknown[]): HandedOff {
  const [version, key, process, number, token, acquiredAt, ...asked] = fields;
  const [owner, permits, capacity, ttlMs, minHoldMs, renew, metadata, maxHoldMs] = asked;
  if (version !== HANDOFF_VERSION || typeof key !== 'string' || typeof process !== 'string') throw damaged();
  if (!isCount(number) || !isCount(token) || !isCount(acquiredAt, 0)) throw damaged();
  if (process === '' || typeof renew !== 'boolean') throw damaged();
  const [namespace, ...rest] = key.split('/');
  const name = checkKey(rest.join('/'));
  const request: LeaseRequest = {
    key: `${checkNamespace(namespace)}/${name}`,
    name,
    owner: checkOwner(owner),
    ...checkPermits(permits, capacity),
    ttlMs: durationMs(ttlMs, 'ttl', TTL_MS_MIN, TTL_MS_MAX),
    minHoldMs: durationMs(minHoldMs, 'minHold', 0, TTL_MS_MAX),
    // JSON has no infinity.
    maxHoldMs: durationMs(
      maxHoldMs ?? Number.POSITIVE_INFINITY,
      'maxHold',
      TTL_MS_MIN,
      Number.POSITIVE_INFINITY,
    ),
    renew,
    metadata: metadataOf(metadata),
    waitMs: 0,
    queue: true,
    signal: undefined,
    hold: null,
  };
  return { id: { process, number }, token, acquiredAt, request };
}

function metadataOf(text: unknown): string | null {
  if (text === null) return null;
  if (typeof text !== 'string' || typeof JSON.parse(text) !== 'object') throw damaged();
  return text;
}

function isCount(value: unknown, from = 1): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= from;
}

function damaged(): InvalidArgumentError {
  return new InvalidArgumentError(
    'This is not a handoff, or only a part of one: pass on the whole string that `lease.handoff()` returned, or `holdfast acquire` printed.',
  );
}

function newerError(version: number): UnsupportedError {
  return new UnsupportedError(
    `The handoff has format ${version}, and this library knows formats up to ${HANDOFF_VERSION}. ` +
      'A newer Holdfast made it: upgrade this one. Nothing was sent to the store.',
  );
}
