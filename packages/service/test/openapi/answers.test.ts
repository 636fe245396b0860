import { writeFileSync } from 'node:fs';
import type { Store } from 'holdfast';
import { memoryStore } from 'holdfast/memory';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuth } from '../../src/auth/index.js';
import { bearer, keyFile } from '../auth/issuer.js';
import { type Answer, clearScene, type EventStream, listen, type Stage, stage, until } from '../scene.js';
import { type Document, DocumentCheck, type Schema } from './document-check.js';

afterEach(clearScene);

const HOLD = 'a-hold-that-nobody-can-guess.1';
const LOCK = '/v2/locks/own/a';
const V1 = '/v1/own/lock/order-1';
const LEASE = { instanceId: 'instance-1', leaseDuration: 60 };

async function documentOf({ get }: Stage): Promise<Document> {
  return (await get('/v2/openapi.json')).body as unknown as Document;
}

/** A store that can be cut off. */
function cuttable(): Store & { isCut: boolean } {
  const inner = memoryStore();
  const fail = () => Promise.reject(new Error('The connection is cut.'));
  const store = {
    ...inner,
    isCut: false,
    apply: (commands: Parameters<Store['apply']>[0]) =>
      store.isCut ? commands.map(fail) : inner.apply(commands),
    read: (key: string) => (store.isCut ? fail() : inner.read(key)),
    probe: () => (store.isCut ? fail() : inner.probe()),
  };
  return store;
}

/** Notes which operation answered with which status. The scene compares every answer with the document. */
class Seen {
  readonly #check: DocumentCheck;
  readonly #scene: Stage;
  readonly statuses: string[] = [];

  constructor(scene: Stage, document: Document) {
    this.#scene = scene;
    this.#check = new DocumentCheck(document);
  }

  async call(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer> {
    const answer = await this.#scene.call(method, path, body, headers);
    this.statuses.push(`${this.#check.operationOf(method, path)?.operationId} ${answer.status}`);
    return answer;
  }
}

describe('real answers are as the OpenAPI document says', () => {
  it('of locks that are acquired, renewed, looked at and released', async () => {
    const scene = await stage();
    const seen = new Seen(scene, await documentOf(scene));
    const post = (path: string, body: object) => seen.call('POST', path, body);
    await post(`${LOCK}/acquire`, { ttl: '30s', hold: HOLD, metadata: { job: 7 } });
    await post(`${LOCK}/acquire`, { ttl: '30s' });
    const waiting = post(`${LOCK}/acquire`, { ttl: '30s', wait: '20s' });
    await until(async () => (await seen.call('GET', LOCK)).body.waiting === 1, 'somebody waits');
    await seen.call('GET', '/v2/locks?namespace=own');
    await seen.call('GET', '/v2/locks?key=own%2Fa&metadata=text');
    await post(`${LOCK}/renew`, { ttl: '30s', hold: HOLD });
    await post(`${LOCK}/release`, { hold: HOLD, minHold: '10ms' });
    await waiting;
    await post(`${LOCK}/renew`, { ttl: '30s', hold: HOLD });
    await post(`${LOCK}/acquire`, { ttl: '30s', hold: HOLD });
    await post(`${LOCK}/evict`, {});
    await post(`${LOCK}/acquire`, { ttl: '30s', typo: 1 });
    await seen.call('POST', `${LOCK}/acquire`, 'ttl=30s', { 'content-type': 'text/csv' });
    await seen.call('POST', `${LOCK}/acquire`, { ttl: '30s', owner: 'x'.repeat(70_000) });
    for (const path of ['/v2/probe', '/healthz', '/readyz', '/metrics']) await seen.call('GET', path);
    expect(new Set(seen.statuses)).toEqual(
      new Set([
        ...['acquire 200', 'acquire 400', 'acquire 409', 'acquire 413', 'acquire 415', 'acquire 423'],
        ...['inspect 200', 'list 200', 'renew 200', 'renew 409', 'release 200', 'evict 200'],
        ...['probe 200', 'healthz 200', 'readyz 200', 'metrics 200'],
      ]),
    );
  });

  it('of a batch, with every kind of reply', async () => {
    const scene = await stage();
    const seen = new Seen(scene, await documentOf(scene));
    const hold = (process: string) => ({ process, number: 1 });
    const claim = { kind: 'claim', key: 'own/a', owner: 'ann', permits: 1, capacity: 1, ttlMs: 30_000 };
    const asking = { ...claim, queue: true, inbox: null, metadata: '{"job":7}' };
    const { body } = await seen.call('POST', '/v2/batch', {
      commands: [
        { ...asking, hold: hold('one') },
        { ...asking, hold: hold('two') },
        { kind: 'renew', key: 'own/a', hold: hold('one'), ttlMs: 40_000, block: true },
        { kind: 'renew', key: 'own/a', hold: hold('two'), ttlMs: 40_000, block: false },
        { kind: 'release', key: 'own/a', hold: hold('two'), minHoldMs: 0 },
        { kind: 'evict', key: 'own/a', upToToken: Number.MAX_SAFE_INTEGER },
        { ...asking, hold: hold('one') },
        { ...asking, key: 'own/\u0000', hold: hold('one') },
      ],
    });
    const kinds = (body.replies as readonly { readonly kind?: string }[]).map(({ kind }) => kind);
    expect(kinds).toEqual([
      ...['granted', 'busy', 'renewed', 'lost', 'released', 'evicted', 'withdrawn'],
      // A problem.
      undefined,
    ]);
  });

  it('of a principal that is not known, may not, or reached a limit', async () => {
    const { path, keys } = await keyFile({ ada: ['lock:own'], bob: ['lock:other'], god: ['admin:*'] });
    const scene = await stage({ auth: createAuth({ apiKeys: path, limits: { held: 1 } }) });
    const seen = new Seen(scene, await documentOf(scene));
    const acquire = (name: string, key: string) =>
      seen.call('POST', `/v2/locks/own/${name}/acquire`, { ttl: '30s' }, bearer(key));
    await acquire('a', 'hfk_wrong');
    await acquire('a', keys.bob);
    await acquire('a', keys.ada);
    await acquire('b', keys.ada);
    const v1 = (name: string, key: string) =>
      seen.call('POST', `/v1/own/lock/${name}/acquire`, LEASE, bearer(key));
    await v1('order-1', 'hfk_wrong');
    await v1('order-1', keys.bob);
    await v1('order-1', keys.ada);
    await seen.call('POST', `${LOCK}/evict`, {}, bearer(keys.ada));
    await seen.call('GET', '/metrics', undefined, bearer(keys.ada));
    writeFileSync(path, 'no keys');
    await until(async () => (await acquire('a', keys.ada)).status === 503, 'the keys cannot be read');
    expect((await v1('order-1', keys.ada)).status).toBe(503);
    expect(seen.statuses).toEqual(
      expect.arrayContaining([
        ...['acquire 200', 'acquire 401', 'acquire 403', 'acquire 429', 'acquire 503', 'evict 403'],
        ...['v1Acquire 401', 'v1Acquire 403', 'v1Acquire 429', 'v1Acquire 503', 'metrics 403'],
      ]),
    );
  });

  it('of a store that does not answer', async () => {
    const store = cuttable();
    const scene = await stage({ store });
    const seen = new Seen(scene, await documentOf(scene));
    store.isCut = true;
    await Promise.all([
      seen.call('POST', `${LOCK}/acquire`, { ttl: '30s' }),
      seen.call('POST', `${LOCK}/renew`, { ttl: '30s', hold: HOLD }),
      seen.call('POST', `${LOCK}/release`, { hold: HOLD }),
      seen.call('POST', `${LOCK}/evict`, {}),
      seen.call('GET', LOCK),
      seen.call('GET', '/v2/probe'),
      seen.call('GET', '/readyz'),
      seen.call('GET', V1),
      seen.call('POST', `${V1}/acquire`, LEASE),
    ]);
    const failed = seen.statuses.sort();
    store.isCut = false;
    expect(failed).toEqual([
      ...['acquire 503', 'evict 503', 'inspect 503', 'probe 503', 'readyz 503', 'release 503', 'renew 503'],
      ...['v1Acquire 500', 'v1Inspect 500'],
    ]);
  });

  it('of /v1', async () => {
    const scene = await stage();
    const seen = new Seen(scene, await documentOf(scene));
    const post = (action: string, body: object) => seen.call('POST', `${V1}/${action}`, body);
    const other = { ...LEASE, instanceId: 'instance-2' };
    await seen.call('GET', V1);
    for (const action of ['acquire', 'renew']) {
      await post(action, LEASE);
      await post(action, other);
      await post(action, { ...LEASE, leaseDuration: 0 });
    }
    await seen.call('GET', V1);
    await seen.call('GET', '/v1/own/lock/x');
    await post('release', { instanceId: other.instanceId });
    await post('release', { instanceId: LEASE.instanceId });
    await post('release', {});
    await post('acquire', { ...LEASE, instanceId: 'x'.repeat(70_000) });
    expect(new Set(seen.statuses)).toEqual(
      new Set([
        ...['v1Inspect 200', 'v1Inspect 400', 'v1Acquire 200', 'v1Acquire 400', 'v1Acquire 413'],
        ...['v1Acquire 423', 'v1Renew 200', 'v1Renew 400', 'v1Renew 423'],
        ...['v1Release 200', 'v1Release 400', 'v1Release 423'],
      ]),
    );
  });
});

describe('real events are as the OpenAPI document says', () => {
  function findingsIn(document: Document, name: string, { events }: EventStream): readonly string[] {
    const check = new DocumentCheck(document);
    const schema = document.components.schemas[name] as Schema;
    return events.flatMap((event) => check.findingsIn(schema, event));
  }

  it('of locks', async () => {
    const scene = await stage();
    const { url, acquire, post } = scene;
    const stream = await listen(url, '/v2/events');
    const hears = (name: string) => until(() => stream.events.some(({ event }) => event === name), name);
    await hears('ready');
    const { hold } = await acquire('own/a');
    await hears('appeared');
    await post(`${LOCK}/renew`, { hold, ttl: '60s' });
    await hears('renewed');
    await post(`${LOCK}/release`, { hold });
    await hears('gone');
    expect(findingsIn(await documentOf(scene), 'LockEvent', stream)).toEqual([]);
  });

  it('of an inbox', async () => {
    const scene = await stage();
    const { url, post } = scene;
    const stream = await listen(url, '/v2/inboxes/mine/events');
    await until(() => stream.events.length > 0, 'ready');
    const claim = { kind: 'claim', key: 'own/a', owner: 'ann', permits: 1, capacity: 1, ttlMs: 30_000 };
    const hold = (process: string) => ({ process, number: 1 });
    const asking = { ...claim, queue: true, inbox: 'mine', metadata: null };
    const commands = [
      { ...asking, hold: hold('one') },
      { ...asking, hold: hold('two') },
      { kind: 'release', key: 'own/a', hold: hold('one'), minHoldMs: 0 },
    ];
    await post('/v2/batch', { commands });
    await until(() => stream.events.some(({ event }) => event === 'wake'), 'a wake-up');
    expect(findingsIn(await documentOf(scene), 'InboxEvent', stream)).toEqual([]);
  });
});
