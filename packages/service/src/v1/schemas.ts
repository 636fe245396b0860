/**
 * The shapes of this contract, for the OpenAPI document. They neither validate nor write: the contract has its own
 * messages for errors.
 */
import { retryAfter } from '../openapi/problem-schema.js';
import {
  closed,
  constant,
  count,
  type Description,
  large,
  list,
  named,
  object,
  ref,
  type Schema,
  text,
} from '../openapi/schema.js';
import { LETTERS_MAX, LETTERS_MIN, NAME } from './contract.js';

const LETTERS = { minLength: LETTERS_MIN, maxLength: LETTERS_MAX, pattern: NAME.source };
const namespace = text('The namespace in the path.');
const lockName = text('The lock name in the path.');
const owner = text('The name of the API key, or the subject of the JWT.');
const expiry = large('The last second in which the lock is held, in seconds since 1970.');
const instanceId = text('Which instance of the owner asks. A secret of the client.', LETTERS);
const success = constant(true, 'The lock is held by this owner and instance, or was released.');

const lock = named('V1Lock', {
  ...object({ namespace, lockName, owner, expiry }, ['owner', 'expiry']),
  description: '`owner` and `expiry` are there while the lock is held.',
});

const lease = named(
  'V1Lease',
  object({
    ...{ success, namespace, lockName, owner, instanceId },
    leaseDuration: large('Seconds, with all renewals.'),
    expiry,
  }),
);

const released = named('V1Released', object({ success, namespace, lockName }));

const refused = named(
  'V1Refused',
  object({ success: constant(false, 'Another owner or instance holds the lock.'), namespace, lockName }),
);

const invalid = named(
  'V1ValidationError',
  object({
    message: text('The error.'),
    details: list({ type: 'string' }, 'The errors, one by one.'),
  }),
);

const failure = named(
  'V1Error',
  object({ message: text('The error.'), errorId: text("Finds the request in the service's log.") }),
);

const releaseRequest = named('V1ReleaseRequest', closed({ instanceId }));

/** The named schemas. `secondsMax`: the longest lease. */
export function v1Schemas(secondsMax: number): readonly Schema[] {
  const leaseDuration = count('Seconds.', { minimum: 1, maximum: secondsMax });
  const leaseRequest = named('V1LeaseRequest', closed({ instanceId, leaseDuration }));
  return [lock, lease, released, refused, invalid, failure, leaseRequest, releaseRequest];
}

const params = object({
  namespace: text('Letters, digits, dashes and underscores.', LETTERS),
  lockName: text('Letters, digits, dashes and underscores.', LETTERS),
});

function answer(name: string, description: string, headers?: Schema): Schema {
  return { description, ...(headers && { headers }), content: { 'application/json': { schema: ref(name) } } };
}

const ERRORS: Readonly<Record<number, Schema>> = {
  400: answer('V1ValidationError', 'The names or the body are not valid.'),
  401: answer('V1Error', 'The API key or JWT is missing or not accepted.'),
  403: answer('V1Error', 'The principal has no right to do this.'),
  429: answer('V1Error', 'A limit of the service or of the principal is reached.', {
    'retry-after': retryAfter,
  }),
  500: answer('V1Error', 'The service or its store failed. Whether the request was executed is unknown.'),
  503: answer('V1Error', 'The service is closing, or authentication is temporarily unavailable.', {
    'retry-after': retryAfter,
  }),
};

export const inspectDescription: Description = {
  operationId: 'v1Inspect',
  summary: 'Get a lock',
  tags: ['v1'],
  params,
  response: { 200: answer('V1Lock', 'Also if the lock is free.'), ...ERRORS },
};

const ACTIONS = {
  acquire: {
    summary: 'Acquire a lock',
    description: 'The same owner and instance may acquire a lock again. That overwrites the lease.',
    granted: 'V1Lease',
  },
  renew: {
    summary: 'Renew a lock',
    description: 'Adds `leaseDuration` to the expiry.',
    granted: 'V1Lease',
  },
  release: {
    summary: 'Release a lock',
    description: 'Releasing a free lock is a 200, too.',
    granted: 'V1Released',
  },
} as const;

export type Action = keyof typeof ACTIONS;

export function actionDescription(name: Action): Description {
  const { summary, description, granted } = ACTIONS[name];
  return {
    operationId: `v1${name[0]?.toUpperCase()}${name.slice(1)}`,
    summary,
    description,
    tags: ['v1'],
    params,
    body: ref(name === 'release' ? 'V1ReleaseRequest' : 'V1LeaseRequest'),
    response: {
      200: answer(granted, 'Done.'),
      ...ERRORS,
      413: answer('V1Error', 'The body is too large.'),
      423: answer('V1Refused', 'Another owner or instance holds the lock.'),
    },
  };
}

/** The health check of load balancers that were set up for LockServiceCentral. */
export const actuatorDescription: Description = {
  operationId: 'actuatorHealth',
  summary: 'Check that the process is alive, as LockServiceCentral answers it',
  tags: ['Operations'],
  response: {
    200: {
      description: 'It is.',
      content: {
        'application/json': { schema: object({ status: constant('UP', 'The process is alive.') }) },
      },
    },
  },
  problems: ['forbidden', 'closing'],
};
