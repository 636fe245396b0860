/** The schemas that validate `/v2`, write its answers, and become its OpenAPI document. */
import type { FastifySchema } from 'fastify';

const time = (description: string): object => ({
  type: 'integer',
  description: `${description} Milliseconds since 1970, by the store's clock.`,
});

const duration = (description: string): object => ({
  description: `${description} Milliseconds, or text like '500ms', '30s', '5m', '1h'.`,
  anyOf: [
    { type: 'number', minimum: 0 },
    { type: 'string', maxLength: 24 },
  ],
});

const holdSchema = {
  type: 'string',
  minLength: 3,
  maxLength: 100,
  description: 'A secret of its holder: whoever has it can renew and release.',
};

const count = { type: 'integer', minimum: 1, maximum: 1_000_000 };

const holder = {
  type: 'object',
  required: ['owner', 'permits', 'capacity', 'token', 'acquiredAt', 'expiresAt', 'metadata', 'resting'],
  properties: {
    owner: { type: 'string' },
    permits: { type: 'integer' },
    capacity: { type: 'integer' },
    token: { type: 'integer', description: 'The fencing token: rises with every grant of a key.' },
    acquiredAt: time('When it was granted.'),
    expiresAt: time('When it ends unless renewed.'),
    metadata: { description: 'As its holder gave it.' },
    resting: { type: 'boolean', description: 'Released inside its minHold: kept until expiresAt.' },
  },
};

const waiter = {
  type: 'object',
  required: ['owner', 'permits', 'capacity', 'since', 'woken'],
  properties: {
    owner: { type: 'string' },
    permits: { type: 'integer' },
    capacity: { type: 'integer' },
    since: {
      type: 'integer',
      description: 'Since when it waits, as far as is known here. Only to be shown.',
    },
    woken: { type: 'boolean', description: 'It was told that it is its turn.' },
  },
};

export const lockSchema = {
  type: 'object',
  required: ['key', 'now', 'token', 'holders', 'holding', 'waiters', 'waiting'],
  properties: {
    key: { type: 'string' },
    now: time('When this was so.'),
    token: { type: 'integer', description: 'The highest token so far; 0 where nothing is known.' },
    holders: { type: 'array', items: holder, description: 'At most 1,000, with 256 KB of metadata.' },
    holding: { type: 'integer', description: 'How many hold in all.' },
    waiters: {
      type: 'array',
      items: waiter,
      description: 'In order, as far as this service knows; at most 128.',
    },
    waiting: { type: 'integer', description: 'How many wait in all.' },
  },
};

export const grantSchema = {
  type: 'object',
  required: ['key', 'hold', 'token', 'owner', 'acquiredAt', 'expiresAt', 'now', 'remainingMs'],
  properties: {
    key: { type: 'string' },
    hold: holdSchema,
    token: { type: 'integer', description: 'The fencing token: rises with every grant of a key.' },
    owner: { type: 'string' },
    acquiredAt: time('When it was granted.'),
    expiresAt: time('When it ends unless renewed.'),
    now: time('When this was decided.'),
    remainingMs: { type: 'integer', description: 'What is left of it when this answer is sent, at least.' },
  },
};

export const problemSchema = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'code'],
  additionalProperties: true,
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    code: { type: 'string' },
    key: { type: 'string' },
    requestId: { type: 'string' },
  },
};

export const pathSchema = {
  type: 'object',
  required: ['namespace', 'name'],
  properties: {
    namespace: { type: 'string', maxLength: 64, description: 'Letters, digits, dots, dashes, underscores.' },
    name: {
      type: 'string',
      maxLength: 512,
      description: 'Anything but control characters, percent-encoded.',
    },
  },
};

export const acquireSchema = {
  type: 'object',
  required: ['ttl'],
  additionalProperties: false,
  properties: {
    ttl: duration('How long the grant lives without renewal.'),
    wait: duration('How long to wait for it; not at all unless told.'),
    owner: { type: 'string', minLength: 1, maxLength: 256, description: 'Who asks, for people to read.' },
    metadata: { type: 'object', description: 'Shown to whoever looks at the lock; at most 4 KB.' },
    mode: {
      enum: ['exclusive', 'read', 'write'],
      description: 'read and write make a read-write lock of the key.',
    },
    permits: { ...count, description: 'How many permits of a semaphore.' },
    capacity: { ...count, description: 'How many permits the semaphore has.' },
    hold: { ...holdSchema, description: 'Your own secret, TEXT.NUMBER: repeated, it is the same grant.' },
    minHold: duration('Keep the lock at least so long after the grant, even if released earlier.'),
    queue: { type: 'boolean', description: "Stand in the store's line while waiting. On unless told." },
  },
};

/** More is asked of it than a schema can say in words of use. */
export const acquireHeadersSchema = {
  type: 'object',
  properties: {
    'idempotency-key': {
      type: 'string',
      description:
        'Repeated with the same text, an acquire is the same grant. 16 to 200 letters that nobody can guess.',
    },
  },
};

export const renewSchema = {
  type: 'object',
  required: ['hold', 'ttl'],
  additionalProperties: false,
  properties: { hold: holdSchema, ttl: duration('How long it lives from now on; never shortens.') },
};

export const renewedSchema = {
  type: 'object',
  required: ['key', 'expiresAt', 'now', 'remainingMs'],
  properties: {
    key: { type: 'string' },
    expiresAt: time('When it ends unless renewed again.'),
    now: time('When this was decided.'),
    remainingMs: { type: 'integer', description: 'What is left of it when this answer is sent, at least.' },
  },
};

export const releaseSchema = {
  type: 'object',
  required: ['hold'],
  additionalProperties: false,
  properties: { hold: holdSchema, minHold: duration('Keep the lock at least so long after the grant.') },
};

export const releasedSchema = {
  type: 'object',
  required: ['key', 'released', 'held', 'now'],
  properties: {
    key: { type: 'string' },
    released: { const: true, type: 'boolean' },
    held: { type: 'boolean', description: 'Whether it held the lock until now.' },
    now: time('When this was decided.'),
  },
};

export const evictSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    upToToken: {
      type: 'integer',
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Ends the holds up to this token, which you saw; the highest at this moment unless told.',
    },
  },
};

export const evictedSchema = {
  type: 'object',
  required: ['key', 'evicted', 'now'],
  properties: {
    key: { type: 'string' },
    evicted: { type: 'integer', description: 'How many holds ended.' },
    now: time('When this was decided.'),
  },
};

export const listQuerySchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    namespace: { type: 'string', maxLength: 64 },
    prefix: { type: 'string', maxLength: 577, description: 'Of names with a namespace, else of whole keys.' },
    key: { type: 'string', maxLength: 577, description: 'Only this whole key.' },
    limit: {
      type: 'string',
      pattern: '^[1-9][0-9]{0,3}$',
      description: 'At most so many; 100 unless told, never more than 1,000.',
    },
    after: { type: 'string', maxLength: 577, description: 'What `next` said.' },
    metadata: { enum: ['json', 'text'], description: 'text: exactly as the holder gave it.' },
  },
};

export const listSchema = {
  type: 'object',
  required: ['locks', 'next'],
  properties: {
    locks: { type: 'array', items: lockSchema },
    next: {
      type: ['string', 'null'],
      description: 'Give this as `after` for what follows; null at the end.',
    },
  },
};

/** An answer that goes on. */
export const eventStream = {
  200: { description: 'Events.', content: { 'text/event-stream': { schema: { type: 'string' } } } },
};

/** What the framework validates by, and what the OpenAPI document says besides. */
export interface Description extends FastifySchema {
  readonly operationId: string;
  readonly summary: string;
}

export function described(description: Description): FastifySchema {
  return description;
}
