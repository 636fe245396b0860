/** What is refused, and the words in which clients are told. */
import { afterEach, describe, expect, it } from 'vitest';
import { clearScene, STORES, stage } from '../scene.js';

afterEach(clearScene);

const ID = 'instanceId';
const extra = (name: string): string =>
  `$: property '${name}' is not defined in the schema and the schema does not allow additional properties`;
const missing = (name: string): string => `$: required property '${name}' not found`;
const PATTERN = '$.instanceId: does not match the regex pattern ^[a-zA-Z0-9_-]+$';
const SHORT = '$.instanceId: must be at least 3 characters long';

interface Row {
  readonly body: unknown;
  readonly details: readonly string[];
  /** All three unless told. */
  readonly of?: readonly string[];
}

const LEASES = ['acquire', 'renew'];
const good = { instanceId: 'one-instance', leaseDuration: 60 };

const BODIES: Readonly<Record<string, Row>> = {
  'nothing at all': { body: '', details: ['$: is not JSON'] },
  'half a body': { body: '{"instanceId":"one-inst', details: ['$: is not JSON'] },
  'no JSON': { body: 'instanceId=one-instance', details: ['$: is not JSON'] },
  'an array': { body: [good], details: ['$: array found, object expected'] },
  null: { body: 'null', details: ['$: null found, object expected'] },
  'a text': { body: '"one-instance"', details: ['$: string found, object expected'] },
  'a number': { body: '7', details: ['$: integer found, object expected'] },
  'an empty object': { body: {}, of: LEASES, details: [missing(ID), missing('leaseDuration')] },
  'an empty object to release': { body: {}, of: ['release'], details: [missing(ID)] },
  'no instance': { body: { leaseDuration: 60 }, of: LEASES, details: [missing(ID)] },
  'no lease': { body: { instanceId: 'one-instance' }, of: LEASES, details: [missing('leaseDuration')] },
  'a lease to release': { body: good, of: ['release'], details: [extra('leaseDuration')] },
  'an unknown field': { body: { ...good, foo: 'bar' }, of: LEASES, details: [extra('foo')] },
  'an unknown field to release': {
    body: { instanceId: 'one-instance', foo: 'bar' },
    of: ['release'],
    details: [extra('foo')],
  },
  'an owner of their own': { body: { ...good, owner: 'root' }, of: LEASES, details: [extra('owner')] },
  'the prototype': {
    body: '{"instanceId":"one-instance","leaseDuration":60,"__proto__":{"a":1}}',
    of: LEASES,
    details: [extra('__proto__')],
  },
  'an instance of two letters': { body: { ...good, instanceId: 'ab' }, of: LEASES, details: [SHORT] },
  'an instance of 65 letters': {
    body: { ...good, instanceId: 'a'.repeat(65) },
    of: LEASES,
    details: ['$.instanceId: must be at most 64 characters long'],
  },
  'an empty instance': { body: { ...good, instanceId: '' }, of: LEASES, details: [SHORT, PATTERN] },
  'an instance with a space': { body: { ...good, instanceId: 'a b c' }, of: LEASES, details: [PATTERN] },
  'an instance with a line break': { body: { ...good, instanceId: 'abc\n' }, of: LEASES, details: [PATTERN] },
  'an instance that is a number': {
    body: { ...good, instanceId: 1_234 },
    of: LEASES,
    details: ['$.instanceId: integer found, string expected'],
  },
  'an instance that is null': {
    body: { instanceId: null },
    of: ['release'],
    details: ['$.instanceId: null found, string expected'],
  },
  'no second': {
    body: { ...good, leaseDuration: 0 },
    of: LEASES,
    details: ['$.leaseDuration: must have a minimum value of 1'],
  },
  'less than none': {
    body: { ...good, leaseDuration: -60 },
    of: LEASES,
    details: ['$.leaseDuration: must have a minimum value of 1'],
  },
  'a second more than a day': {
    body: { ...good, leaseDuration: 86_401 },
    of: LEASES,
    details: ['$.leaseDuration: must have a maximum value of 86400'],
  },
  'half a second': {
    body: { ...good, leaseDuration: 1.5 },
    of: LEASES,
    details: ['$.leaseDuration: number found, integer expected'],
  },
  'more than a number can be': {
    body: '{"instanceId":"one-instance","leaseDuration":1e999}',
    of: LEASES,
    details: ['$.leaseDuration: number found, integer expected'],
  },
  'a lease as text': {
    body: { ...good, leaseDuration: '60' },
    of: LEASES,
    details: ['$.leaseDuration: string found, integer expected'],
  },
  'all at once': {
    body: { foo: 1, instanceId: 'a!', leaseDuration: 'x' },
    of: LEASES,
    details: [extra('foo'), SHORT, PATTERN, '$.leaseDuration: string found, integer expected'],
  },
};

const NAMESPACE_LENGTH =
  "Parameter 'namespace' failed validation: Namespace must be between 3 and 64 characters long";
const NAMESPACE_LETTERS =
  "Parameter 'namespace' failed validation: Namespace must be alphanumeric with dashes and underscores only";
const NAME_LENGTH =
  "Parameter 'lockName' failed validation: Lock name must be between 3 and 64 characters long";
const NAME_LETTERS =
  "Parameter 'lockName' failed validation: Lock name must be alphanumeric with dashes and underscores only";

const PATHS: Readonly<Record<string, readonly string[]>> = {
  'billing/lock/a': [NAME_LENGTH],
  'ab/lock/order-1': [NAMESPACE_LENGTH],
  'ab/lock/a': [NAMESPACE_LENGTH, NAME_LENGTH],
  [`billing/lock/${'a'.repeat(65)}`]: [NAME_LENGTH],
  [`${'a'.repeat(65)}/lock/order-1`]: [NAMESPACE_LENGTH],
  'billing/lock/order.1': [NAME_LETTERS],
  'billing/lock/order%2F1': [NAME_LETTERS],
  'billing/lock/order%0A': [NAME_LETTERS],
  'bill%20ing/lock/order-1': [NAMESPACE_LETTERS],
  'billing/lock/%C3%A4%C3%B6%C3%BC': [NAME_LETTERS],
  'billing/lock/a!': [NAME_LETTERS, NAME_LENGTH],
};

for (const [name, newStore] of Object.entries(STORES)) {
  describe(`refused on ${name}`, () => {
    it('every body that is not as it should be, in every request that has one', async () => {
      const { post, get } = await stage({ store: newStore() });
      for (const [what, { body, details, of = ['acquire', 'renew', 'release'] }] of Object.entries(BODIES)) {
        for (const verb of of) {
          const answer = await post(`/v1/billing/lock/order-1/${verb}`, body);
          expect([what, verb, answer.status, answer.body]).toEqual([
            what,
            verb,
            400,
            { message: 'JSON validation failed', details },
          ]);
        }
      }
      expect((await get('/v1/billing/lock/order-1')).body.owner).toBeUndefined();
    });

    it('every name that is not as it should be', async () => {
      const { post, get } = await stage({ store: newStore() });
      for (const [path, details] of Object.entries(PATHS)) {
        const refusal = [path, 400, { message: 'Validation failed', details }];
        const look = await get(`/v1/${path}`);
        expect([path, look.status, look.body]).toEqual(refusal);
        for (const verb of LEASES) {
          const answer = await post(`/v1/${path}/${verb}`, good);
          expect([path, answer.status, answer.body]).toEqual(refusal);
        }
        const release = await post(`/v1/${path}/release`, { instanceId: 'one-instance' });
        expect([path, release.status, release.body]).toEqual(refusal);
      }
    });
  });
}

describe('what clients send', () => {
  it('where both are wrong, the body is what is spoken of', async () => {
    const { post } = await stage();
    expect((await post('/v1/a/lock/b/acquire', {})).body.message).toBe('JSON validation failed');
  });

  it('the shortest and the longest names are fine', async () => {
    const { post } = await stage();
    for (const text of ['a_-', 'Z'.repeat(64)]) {
      const body = { instanceId: text, leaseDuration: 1 };
      expect((await post(`/v1/${text}/lock/${text}/acquire`, body)).status).toBe(200);
    }
  });

  it('the body is JSON whatever its Content-Type says', async () => {
    const { url } = await stage();
    const body = JSON.stringify({ instanceId: 'one', leaseDuration: 60.0 });
    const types = [
      'application/json',
      'application/x-www-form-urlencoded',
      'text/plain',
      'application/vnd.x+json',
    ];
    for (const type of [...types, 'multipart/form-data; boundary=x', 'nonsense']) {
      const init = { method: 'POST', body, headers: { 'content-type': type } };
      const answer = await fetch(`${url}/v1/billing/lock/order-1/acquire`, init);
      expect([type, answer.status]).toEqual([type, 200]);
    }
    const bytes = { method: 'POST', body: new TextEncoder().encode(body) };
    expect((await fetch(`${url}/v1/billing/lock/order-1/acquire`, bytes)).status).toBe(200);
  });

  it('a lease may not be longer than the service allows', async () => {
    const { post } = await stage({ limits: { ttlMsMax: 60_000 } });
    const { status, body } = await post('/v1/billing/lock/order-1/acquire', { ...good, leaseDuration: 61 });
    expect([status, body.details]).toEqual([400, ['$.leaseDuration: must have a maximum value of 60']]);
  });

  it('the name of an unknown field is shown in part when it is long', async () => {
    const { post } = await stage();
    const { text } = await post('/v1/billing/lock/order-1/release', { ['x'.repeat(5_000)]: 1 });
    expect(text.length).toBeLessThan(400);
  });
});
