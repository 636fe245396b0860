/** Two services on one store: a lock acquired at one of them may be given back at the other. */
import { memoryStore } from 'holdfast/memory';
import { afterEach, describe, expect, it } from 'vitest';
import type { PrincipalLimits } from '../../src/auth/allowance.js';
import { Holdings } from '../../src/auth/holdings.js';
import { createAuth } from '../../src/auth/index.js';
import { clearScene, stage } from '../scene.js';
import { bearer, keyFile } from './issuer.js';

afterEach(clearScene);

async function twoServices(limits: Partial<PrincipalLimits>) {
  const { path, keys } = await keyFile({ ada: ['lock:own'] });
  const store = memoryStore();
  const here = await stage({ store, auth: createAuth({ apiKeys: path, limits }) });
  const there = await stage({ store, auth: createAuth({ apiKeys: path, limits }) });
  return { here, there, ada: bearer(keys.ada) };
}

describe('locks that were given back at another service', () => {
  it('do not count against how many locks a tenant may hold', async () => {
    const { here, there, ada } = await twoServices({ held: 40 });
    const acquire = (name: number) => here.post(`/v2/locks/own/${name}/acquire`, { ttl: '1h' }, ada);
    const held = await Promise.all(Array.from({ length: 40 }, (_, name) => acquire(name)));
    expect((await acquire(100)).status).toBe(429);
    const released = held.map(({ body }) =>
      there.post(`/v2/locks/${body.key}/release`, { hold: body.hold }, ada),
    );
    for (const { body } of await Promise.all(released)) expect(body.held).toBe(true);
    const again = await Promise.all(Array.from({ length: 40 }, (_, name) => acquire(200 + name)));
    expect(new Set(again.map(({ status }) => status))).toEqual(new Set([200]));
    expect((await acquire(300)).status).toBe(429);
  });

  it('do not count though others have taken them since, nor over /v1 or in a batch', async () => {
    const { here, there, ada } = await twoServices({ held: 3 });
    const { body } = await here.post('/v2/locks/own/a/acquire', { ttl: '1h' }, ada);
    const lease = { instanceId: 'one-instance', leaseDuration: 3_600 };
    expect((await here.post('/v1/own/lock/old/acquire', lease, ada)).status).toBe(200);
    const hold = { process: 'the-own-hold-of-ada', number: 1 };
    const claim = {
      kind: 'claim',
      key: 'own/b',
      hold,
      owner: 'o',
      permits: 1,
      capacity: 1,
      ttlMs: 3_600_000,
    };
    const commands = [{ ...claim, queue: false, inbox: null, metadata: null }];
    expect((await here.post('/v2/batch', { commands }, ada)).body.replies).toMatchObject([
      { kind: 'granted' },
    ]);
    const more = (name: string) => here.post(`/v2/locks/own/${name}/acquire`, { ttl: '1h' }, ada);
    expect((await more('c')).status).toBe(429);
    await there.post('/v2/locks/own/a/release', { hold: body.hold }, ada);
    expect((await there.post('/v2/locks/own/a/acquire', { ttl: '1h' }, ada)).status).toBe(200);
    expect((await more('c')).status).toBe(200);
    expect((await more('d')).status).toBe(429);
    await there.post('/v1/own/lock/old/release', { instanceId: lease.instanceId }, ada);
    expect((await more('d')).status).toBe(200);
    expect((await more('e')).status).toBe(429);
    await there.post('/v2/batch', { commands: [{ kind: 'release', key: 'own/b', hold, minHoldMs: 0 }] }, ada);
    expect((await more('e')).status).toBe(200);
  });

  it('do not count against how many shares of one lock it may hold', async () => {
    const { here, there, ada } = await twoServices({ heldOfKey: 2 });
    const acquire = () => here.post('/v2/locks/own/pool/acquire', { ttl: '1h', capacity: 9 }, ada);
    const [first] = [await acquire(), await acquire()];
    expect((await acquire()).status).toBe(429);
    await there.post('/v2/locks/own/pool/release', { hold: first.body.hold }, ada);
    expect((await acquire()).status).toBe(200);
    expect((await acquire()).status).toBe(429);
  });
});

it('many refusals at the same time read each lock twice at most', async () => {
  const holdings = new Holdings();
  for (let token = 1; token <= 200; token += 1)
    holdings.keep(`own/${token}`, 'the-own-hold.1', 60_000, token);
  const read: string[] = [];
  const tokensOf = async (key: string): Promise<readonly number[]> => {
    read.push(key);
    return [Number(key.slice('own/'.length))];
  };
  await Promise.all(Array.from({ length: 50 }, () => holdings.recount(tokensOf, null)));
  expect(new Set(read).size).toBe(200);
  expect(read.length).toBeLessThanOrEqual(2 * 208);
  expect(holdings.size).toBe(200);
});
