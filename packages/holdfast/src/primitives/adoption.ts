/** Reading a handoff, as strictly as anything else at the door, and without repeating any of it: it is a capability. */
import type { AdoptOptions } from '../api.js';
import {
  checkKey,
  checkNamespace,
  checkOptions,
  checkOwner,
  checkWants,
  type Defaults,
  durationMs,
  TTL_MS_MAX,
  TTL_MS_MIN,
} from '../arguments.js';
import type { HandedOff } from '../engine/adoption.js';
import { HANDOFF_VERSION, handoffFields } from '../engine/handoff-text.js';
import { readMetadata } from '../lease.js';
import { InvalidArgumentError, UnsupportedError } from '../protocol/errors.js';

export function handedOffOf(
  handoff: unknown,
  options: AdoptOptions | undefined,
  defaults: Defaults,
): HandedOff {
  const { ttl } = checkOptions(options ?? {}, ['ttl']);
  const ttlMs = ttl === undefined ? null : durationMs(ttl, 'ttl', TTL_MS_MIN, TTL_MS_MAX);
  const handed = unlessDamaged(() => read(handoff));
  checkBelongs(handed.request.key, defaults.prefix);
  return ttlMs === null ? handed : { ...handed, request: { ...handed.request, ttlMs } };
}

function read(handoff: unknown): HandedOff {
  const fields = (typeof handoff === 'string' && handoffFields(handoff)) || [];
  const [version, key, process, number, token, acquiredAt, ...asked] = fields;
  if (typeof version === 'number' && version > HANDOFF_VERSION) throw newerError(version);
  const [owner, permits, capacity, ttlMs, minHoldMs, renew, metadata] = asked;
  if (version !== HANDOFF_VERSION || typeof key !== 'string' || typeof process !== 'string') throw damaged();
  if (!isCounted(number) || !isCounted(token) || !isCounted(acquiredAt, 0)) throw damaged();
  if (process === '' || typeof renew !== 'boolean') throw damaged();
  const [namespace, ...rest] = key.split('/');
  const name = checkKey(rest.join('/'));
  return {
    id: { process, number },
    token,
    acquiredAt,
    request: {
      key: `${checkNamespace(namespace)}/${name}`,
      name,
      owner: checkOwner(owner),
      ...checkWants(permits, capacity),
      ttlMs: durationMs(ttlMs, 'ttl', TTL_MS_MIN, TTL_MS_MAX),
      minHoldMs: durationMs(minHoldMs, 'minHold', 0, TTL_MS_MAX),
      renew,
      metadata: metadataOf(metadata),
      waitMs: 0,
      queue: true,
      signal: undefined,
    },
  };
}

function metadataOf(text: unknown): string | null {
  if (text === null) return null;
  if (typeof text !== 'string' || typeof readMetadata(text) !== 'object') throw damaged();
  return text;
}

function isCounted(value: unknown, from = 1): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= from;
}

/** The checks of the door say what they found, and what they found here must not be said. */
function unlessDamaged<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof InvalidArgumentError || error instanceof SyntaxError) throw damaged();
    throw error;
  }
}

function damaged(): InvalidArgumentError {
  return new InvalidArgumentError(
    'This is not what `lease.handoff()` gave, or not all of it: pass that string on as it is.',
  );
}

function newerError(version: number): UnsupportedError {
  return new UnsupportedError(
    `The handoff has format ${version}, and this library knows formats up to ${HANDOFF_VERSION}. ` +
      'A newer Holdfast made it: upgrade this one. Nothing was sent to the store.',
  );
}

function checkBelongs(key: string, prefix: string): void {
  if (key.startsWith(prefix)) return;
  const [namespace] = key.split('/');
  throw new InvalidArgumentError(
    `The lease was handed off in the namespace "${namespace}", and these locks are of "${prefix.slice(0, -1)}". ` +
      'Adopt it with locks of its own namespace, on the same store.',
  );
}
