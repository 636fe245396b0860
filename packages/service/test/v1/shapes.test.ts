/** Every way to be refused at `/v1`: never in the words of `/v2`, whatever part of the service refuses. */
import { writeFileSync } from 'node:fs';
import { type ClientRequest, request as httpRequest } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuth } from '../../src/auth/index.js';
import type { ServiceOptions } from '../../src/index.js';
import { bearer, keyFile } from '../auth/issuer.js';
import { clearScene, stage, until } from '../scene.js';

afterEach(clearScene);

interface Sent {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface Refusal {
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
}

/** As it stands: `fetch` would mend some of it. */
function send(url: string, { method = 'GET', path, headers = {}, body = '' }: Sent): Promise<Refusal> {
  return new Promise((resolve, reject) => {
    const sent: ClientRequest = httpRequest(url, { method, path, headers, agent: false }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      answer.on('end', () => {
        const type = answer.headers['content-type'];
        resolve({ status: answer.statusCode, type, body: JSON.parse(text) as Refusal['body'] });
      });
    });
    sent.on('error', reject).end(body);
  });
}

const LOCK = '/v1/billing/lock/order-1';
const good = JSON.stringify({ instanceId: 'one-instance', leaseDuration: 60 });
const acquire = { method: 'POST', path: `${LOCK}/acquire`, body: good };
const ofNames = 'Validation failed';
const ofBody = 'JSON validation failed';
const letters = (parameter: string, words: string): string =>
  `Parameter '${parameter}' failed validation: ${words} must be alphanumeric with dashes and underscores only`;
const length = (parameter: string, words: string): string =>
  `Parameter '${parameter}' failed validation: ${words} must be between 3 and 64 characters long`;

describe('a 400 has message and details', () => {
  const CASES: readonly (readonly [string, Sent, string, readonly string[]])[] = [
    [
      'a lock name of 1537 letters',
      { path: `/v1/billing/lock/${'x'.repeat(1_537)}` },
      ofNames,
      [length('lockName', 'Lock name')],
    ],
    [
      'one of 12000',
      { path: `/v1/billing/lock/${'x'.repeat(12_000)}` },
      ofNames,
      [length('lockName', 'Lock name')],
    ],
    [
      'a namespace of 12000',
      { path: `/v1/${'x'.repeat(12_000)}/lock/order-1` },
      ofNames,
      [length('namespace', 'Namespace')],
    ],
    [
      'and to be acquired',
      { ...acquire, path: `/v1/billing/lock/${'x'.repeat(4_000)}/acquire` },
      ofNames,
      [length('lockName', 'Lock name')],
    ],
    [
      'what is no percent-encoding',
      { path: '/v1/billing/lock/%zz' },
      ofNames,
      [letters('lockName', 'Lock name')],
    ],
    [
      'what encodes no letter',
      { ...acquire, path: '/v1/%ff%fe/lock/order-1/acquire?a=%zz' },
      ofNames,
      [letters('namespace', 'Namespace')],
    ],
    ['half an encoding', { path: '/v1/billing/lock/abc%' }, ofNames, [letters('lockName', 'Lock name')]],
    [
      'a slash that is encoded',
      { path: '/v1/billing/lock/a%2Fb' },
      ofNames,
      [letters('lockName', 'Lock name')],
    ],
    ['half of a JSON', { ...acquire, body: '{"instanceId' }, ofBody, ['$: is not JSON']],
    ['no body', { ...acquire, body: '' }, ofBody, ['$: is not JSON']],
    [
      'no body that is said to be JSON',
      { ...acquire, body: '', headers: { 'content-type': 'application/json' } },
      ofBody,
      ['$: is not JSON'],
    ],
    [
      'a form',
      {
        ...acquire,
        body: 'instanceId=abc',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      },
      ofBody,
      ['$: is not JSON'],
    ],
  ];

  it.each(CASES)('%s', async (_name, sent, message, details) => {
    const { url } = await stage();
    const { status, type, body } = await send(url, sent);
    expect([status, body]).toEqual([400, { message, details }]);
    expect(type).toMatch(/^application\/json/);
  });
});

describe('everything else has message and errorId', () => {
  const evil = { origin: 'http://evil.example' };
  const CASES: readonly (readonly [string, number, Sent, Partial<ServiceOptions>])[] = [
    ['a path that is not there, badly encoded', 404, { path: '/v1/%zz' }, {}],
    ['a long path that is not there', 404, { path: `/v1/${'x'.repeat(4_000)}` }, {}],
    ['a method that few know', 405, { method: 'PROPFIND', path: LOCK }, {}],
    ['what a browser asks first', 405, { method: 'OPTIONS', path: LOCK }, {}],
    [
      'a body that is too large',
      413,
      { ...acquire, body: ' '.repeat(2_000) },
      { limits: { bodyBytes: 1_000 } },
    ],
    ['a page of another site', 403, { ...acquire, headers: evil }, {}],
    ['a name that is not of this machine', 403, { path: LOCK, headers: { host: 'evil.example' } }, {}],
  ];

  it.each(CASES)('%s: %i', async (_name, expected, sent, options) => {
    const { url } = await stage(options);
    const { status, type, body } = await send(url, sent);
    expect([status, Object.keys(body)]).toEqual([expected, ['message', 'errorId']]);
    expect(type).toMatch(/^application\/json/);
  });

  it('who is not known, may not, asks too often, or has too much', async () => {
    const { path, keys } = await keyFile({ ada: ['lock:billing'], bob: ['lock:own'] });
    const limits = { held: 1, requestBurst: 2, requestsPerSecond: 0.001 };
    const { url } = await stage({ auth: createAuth({ apiKeys: path, limits }) });
    const as = (key: string, name = 'order-1'): Sent => ({
      ...{ ...acquire, path: `/v1/billing/lock/${name}/acquire`, headers: bearer(key) },
    });
    const answers = [
      [401, await send(url, acquire)],
      [401, await send(url, as('hfk_wrong'))],
      [403, await send(url, as(keys.bob))],
      [200, await send(url, as(keys.ada))],
      // One lock is the most; two requests are.
      [429, await send(url, as(keys.ada, 'order-2'))],
      [429, await send(url, as(keys.ada))],
    ] as const;
    for (const [expected, { status, body }] of answers) {
      const members = expected === 200 ? expect.anything() : ['message', 'errorId'];
      expect([status, Object.keys(body)]).toEqual([expected, members]);
    }
  });

  it('a service that cannot check who asks', async () => {
    const { path, keys } = await keyFile({ ada: ['lock:billing'] });
    const { url } = await stage({ auth: createAuth({ apiKeys: path }) });
    writeFileSync(path, 'no keys');
    await until(
      async () => (await send(url, { path: LOCK, headers: bearer(keys.ada) })).status === 503,
      'it knows',
    );
    const { status, body } = await send(url, { ...acquire, headers: bearer(keys.ada) });
    expect([status, Object.keys(body)]).toEqual([503, ['message', 'errorId']]);
  });
});
