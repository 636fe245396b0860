/** How many holds of one lock, and how many places in a store's line, one principal may have. */
import { WAITER_LIFE_MS } from 'holdfast/protocol';
import { afterEach, describe, expect, it } from 'vitest';
import type { PrincipalLimits } from '../../src/auth/allowance.js';
import { Holdings } from '../../src/auth/holdings.js';
import { createAuth } from '../../src/auth/index.js';
import { type Answer, clearScene, pause, stage } from '../scene.js';
import { bearer, keyFile } from './issuer.js';

afterEach(clearScene);

async function limited(limits: Partial<PrincipalLimits>) {
  const { path, keys } = await keyFile({ ada: ['lock:own'], bob: ['lock:own'] });
  const scene = await stage({ auth: createAuth({ keys: path, limits }) });
  return { ...scene, ada: bearer(keys.ada), bob: bearer(keys.bob) };
}

const claim = (name: string, number: number, more: object = {}): object => ({
  ...{ kind: 'claim', key: `own/${name}`, hold: { process: `p${number}`, number: 1 }, owner: 'o' },
  ...{ permits: 1, capacity: 1, ttlMs: 30_000, queue: false, inbox: null, metadata: null, ...more },
});

const kindsIn = ({ body }: Answer): readonly string[] =>
  (body.replies as { kind?: string; problem?: { code: string } }[]).map(
    ({ kind, problem }) => problem?.code ?? kind ?? '',
  );

describe('holds of one lock', () => {
  const ACQUIRE = '/v2/locks/own/pool/acquire';

  it('are no more than a principal may have, however many it asks for at once', async () => {
    const { post, ada, bob } = await limited({ heldOfKey: 3 });
    const permit = { ttl: '30s', capacity: 100 };
    const answers = await Promise.all(Array.from({ length: 10 }, () => post(ACQUIRE, permit, ada)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
    const refused = answers.find(({ status }) => status === 429);
    expect(refused?.body).toMatchObject({ code: 'rate-limited', key: 'own/pool' });
    expect(refused?.body.detail).toBe(
      'key:ada holds, or asks for, 3 shares of this lock already: that is the most.',
    );
    // Others, and other locks, have room; so has whoever gives one back.
    expect((await post(ACQUIRE, permit, bob)).status).toBe(200);
    expect((await post('/v2/locks/own/other/acquire', permit, ada)).status).toBe(200);
    const hold = answers.find(({ status }) => status === 200)?.body.hold;
    await post('/v2/locks/own/pool/release', { hold }, ada);
    expect((await post(ACQUIRE, permit, ada)).status).toBe(200);
    expect((await post(ACQUIRE, permit, ada)).status).toBe(429);
  });

  it('are counted for readers, and in a batch', async () => {
    const { post, ada } = await limited({ heldOfKey: 2 });
    for (const status of [200, 200, 429]) {
      expect((await post('/v2/locks/own/read/acquire', { ttl: '30s', mode: 'read' }, ada)).status).toBe(
        status,
      );
    }
    const commands = [1, 2, 3].map((number) => claim('batch', number, { capacity: 9 }));
    const replies = await post('/v2/batch', { commands }, ada);
    expect(kindsIn(replies)).toEqual(['granted', 'granted', 'rate-limited']);
    // The same holds again are no more of them.
    const again = await post('/v2/batch', { commands: commands.slice(0, 2) }, ada);
    expect(kindsIn(again)).toEqual(['granted', 'granted']);
  });

  it('that exclude each other are one: whoever finds it held is told so, and may wait', async () => {
    const { post, ada } = await limited({ heldOfKey: 1 });
    expect((await post(ACQUIRE, { ttl: '30s' }, ada)).status).toBe(200);
    const waiting = Array.from({ length: 3 }, () => post(ACQUIRE, { ttl: '30s', wait: 200 }, ada));
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([423, 423, 423]);
    const lease = { instanceId: 'one-instance', leaseDuration: 60 };
    expect((await post('/v1/own/lock/pool/acquire', lease, ada)).status).toBe(423);
    expect((await post('/v1/own/lock/alone/acquire', lease, ada)).status).toBe(200);
    expect((await post('/v1/own/lock/alone/acquire', lease, ada)).status).toBe(200);
  });
});

describe("places in a store's line, by batch", () => {
  it('count as waiters until they are granted or given up', async () => {
    const { post, ada, bob } = await limited({ waiters: 2 });
    const batch = (commands: readonly object[], as = ada) => post('/v2/batch', { commands }, as);
    expect(kindsIn(await batch([claim('a', 9)], bob))).toEqual(['granted']);
    const queued = [1, 2, 3].map((number) => claim('a', number, { queue: true }));
    expect(kindsIn(await batch(queued))).toEqual(['busy', 'busy', 'rate-limited']);
    expect(kindsIn(await batch([claim('b', 4, { queue: true })]))).toEqual(['rate-limited']);
    // To wait over /v2 is waiting, too; to ask without waiting is not, and neither is to ask again.
    expect((await post('/v2/locks/own/b/acquire', { ttl: '1s', wait: 50 }, ada)).status).toBe(429);
    expect(kindsIn(await batch([claim('b', 5), ...queued.slice(0, 2)]))).toEqual(['granted', 'busy', 'busy']);
    // One gives up, and one is granted.
    const release = (process: string): object => ({
      ...{ kind: 'release', key: 'own/a', hold: { process, number: 1 }, minHoldMs: 0 },
    });
    expect(kindsIn(await batch([release('p2')]))).toEqual(['released']);
    expect(kindsIn(await batch([claim('a', 6, { queue: true })]))).toEqual(['busy']);
    expect(kindsIn(await batch([release('p9')], bob))).toEqual(['released']);
    expect(kindsIn(await batch([queued[0] ?? {}]))).toEqual(['granted']);
    expect(kindsIn(await batch([claim('a', 7, { queue: true })]))).toEqual(['busy']);
  });

  it('count for as long as the store keeps them', async () => {
    const holdings = new Holdings();
    holdings.keep('own/a', 'p1.1', 60, true);
    holdings.keep('own/a', 'p2.1', WAITER_LIFE_MS, true);
    expect([holdings.waiting, holdings.ofKey('own/a')]).toEqual([2, 2]);
    await pause(80);
    holdings.forgetEnded();
    expect([holdings.waiting, holdings.ofKey('own/a'), holdings.size]).toEqual([1, 1, 1]);
    holdings.keep('own/a', 'p2.1', 1_000, false);
    expect([holdings.waiting, holdings.size]).toEqual([0, 1]);
    holdings.keep('own/a', 'p2.1', 0, false);
    expect([holdings.ofKey('own/a'), holdings.size]).toEqual([0, 0]);
  });
});
