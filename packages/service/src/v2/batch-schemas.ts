/** The commands of the store protocol as JSON, and what answers them. */
import type { Limits } from '../http/limits.js';
import { problemSchema } from './schemas.js';

/** Valid Unicode without control characters: stores differ in what they make of others. */
const PLAIN = '^[^\\p{Cc}\\p{Cs}]*$';
const key = { type: 'string', minLength: 1, maxLength: 577 };
const whole = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
const count = { type: 'integer', minimum: 1, maximum: 1_000_000 };
const hold = {
  type: 'object',
  required: ['process', 'number'],
  additionalProperties: false,
  properties: { process: { type: 'string', minLength: 1, maxLength: 100, pattern: PLAIN }, number: whole },
};

function command(
  kind: string,
  properties: Readonly<Record<string, object>>,
  optional: readonly string[] = [],
): object {
  return {
    type: 'object',
    required: ['kind', 'key', ...Object.keys(properties).filter((name) => !optional.includes(name))],
    additionalProperties: false,
    properties: { kind: { const: kind }, key, ...properties },
  };
}

export function batchSchema(limits: Limits): object {
  const ttlMs = { type: 'integer', minimum: 1, maximum: limits.ttlMsMax };
  const claim = command('claim', {
    hold,
    owner: { type: 'string', maxLength: 256, pattern: PLAIN },
    permits: count,
    capacity: count,
    ttlMs,
    queue: { type: 'boolean' },
    inbox: { type: ['string', 'null'], maxLength: 200, pattern: PLAIN },
    metadata: { type: ['string', 'null'], maxLength: 4_096, pattern: PLAIN },
  });
  const added = {
    type: 'object',
    required: ['ms', 'expiresAt'],
    additionalProperties: false,
    // A negative addition makes a lease shorter.
    properties: { ms: { ...whole, minimum: -limits.ttlMsMax, maximum: limits.ttlMsMax }, expiresAt: whole },
  };
  const renew = command('renew', { hold, ttlMs, block: { type: 'boolean' }, added }, ['added']);
  const release = command('release', { hold, minHoldMs: { ...whole, maximum: limits.ttlMsMax } });
  const evict = command('evict', { upToToken: whole });
  return {
    type: 'object',
    required: ['commands'],
    additionalProperties: false,
    properties: {
      commands: {
        type: 'array',
        maxItems: limits.batchCommands,
        items: {
          type: 'object',
          required: ['kind'],
          discriminator: { propertyName: 'kind' },
          oneOf: [claim, renew, release, evict],
        },
      },
    },
  };
}

export const repliesSchema = {
  type: 'object',
  required: ['replies'],
  properties: {
    replies: {
      type: 'array',
      description: 'One a command, in order: a reply of the store protocol, or a problem.',
      items: { type: 'object', additionalProperties: true, properties: { problem: problemSchema } },
    },
  },
};
