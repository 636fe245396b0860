/** Schemas of the requests of `/v2`. They validate them, and are in the OpenAPI document. */
import { closed, count, flag, large, named, object, oneOf, ref, text } from '../openapi/schema.js';
import { STORED_KEY_BYTES_MAX } from './names.js';

export const SAFE = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
export const PERMITS = { minimum: 1, maximum: 1_000_000 };

const duration = named('Duration', {
  description: "Milliseconds, or a number with a unit: '500ms', '30s', '5m', '1h', '7d'.",
  anyOf: [
    { type: 'number', minimum: 0 },
    { type: 'string', maxLength: 24 },
  ],
});

/** The secret of a grant. */
const hold = named('Hold', {
  type: 'string',
  minLength: 3,
  maxLength: 100,
  description: 'TEXT.NUMBER. The secret of a grant: with it, anybody can renew and release the lock.',
});

const acquireRequest = named(
  'AcquireRequest',
  closed(
    {
      ttl: ref('Duration', 'How long the lock lives without renewal.'),
      wait: ref('Duration', 'How long to wait for the lock. Default 0.'),
      owner: text(
        "The caller's name, for people to read. Default: the name of the API key, or the subject of the JWT.",
        {
          minLength: 1,
          maxLength: 256,
        },
      ),
      metadata: {
        type: 'object',
        additionalProperties: true,
        description: 'Shown to everybody who may read the lock. At most 4 KB of JSON.',
      },
      mode: oneOf(
        ['exclusive', 'read', 'write'],
        '`read` and `write` make the key a read-write lock. Default `exclusive`.',
      ),
      permits: count('How many permits of a semaphore to take. Default 1.', PERMITS),
      capacity: count('How many permits the semaphore has. Default 1.', PERMITS),
      hold: ref(
        'Hold',
        'A hold of your own, TEXT.NUMBER, that nobody can guess. The same request again gives the same grant. Default: the service makes one.',
      ),
      minHold: ref(
        'Duration',
        'Nobody else gets the lock sooner than this after the grant, even if it is released earlier. Default 0.',
      ),
      queue: flag("Whether to take a place in the store's queue while waiting. Default true."),
    },
    ['wait', 'owner', 'metadata', 'mode', 'permits', 'capacity', 'hold', 'minHold', 'queue'],
  ),
);

const renewRequest = named(
  'RenewRequest',
  closed({
    hold: ref('Hold'),
    ttl: ref('Duration', 'How long the lock lives from now on. An expiry that is later already stays.'),
  }),
);

const releaseRequest = named(
  'ReleaseRequest',
  closed(
    {
      hold: ref('Hold'),
      minHold: ref('Duration', 'Nobody else gets the lock sooner than this after the grant. Default 0.'),
    },
    ['minHold'],
  ),
);

const evictRequest = named(
  'EvictRequest',
  closed(
    {
      token: large('Ends the hold that has this token, and no other. Not together with `upToToken`.', SAFE),
      upToToken: large(
        'Ends the holds up to this token, and none that was granted later. Default: the highest token now.',
        SAFE,
      ),
      reason: text('For the evicted holders, and for the audit log. At most 256 bytes.', {
        minLength: 1,
        maxLength: 256,
      }),
    },
    ['token', 'upToToken', 'reason'],
  ),
);

export const requestSchemas = [duration, hold, acquireRequest, renewRequest, releaseRequest, evictRequest];

export const pathSchema = object({
  namespace: text('Letters, digits, dots, dashes and underscores.', { maxLength: 64 }),
  name: text('Any characters except control characters, percent-encoded.', { maxLength: 512 }),
});

/** No pattern: the message of the route is better than that of a pattern. */
export const acquireHeadersSchema = object(
  {
    'idempotency-key': text(
      'Instead of a `hold`: 16 to 200 visible ASCII characters that nobody can guess. An acquire with the same text gives the same grant.',
    ),
  },
  ['idempotency-key'],
);

const listQuery = {
  namespace: text('Only keys of this namespace.', { maxLength: 64 }),
  prefix: text('Only names that start with this; without a namespace, only keys that do.', {
    maxLength: STORED_KEY_BYTES_MAX,
  }),
  key: text('Only this key: namespace, slash, name.', { maxLength: STORED_KEY_BYTES_MAX }),
  limit: text('At most this many locks. Default 100, at most 1,000.', { pattern: '^[1-9][0-9]{0,3}$' }),
  after: text('The `next` of the page before.', { maxLength: STORED_KEY_BYTES_MAX }),
  metadata: oneOf(['json', 'text'], '`text`: metadata as the text that was stored. Default `json`.'),
};
export const listQuerySchema = closed(listQuery, Object.keys(listQuery));
