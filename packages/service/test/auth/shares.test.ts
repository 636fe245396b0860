/** How many holds of one lock one principal may have. */
import { afterEach, describe, expect, it } from 'vitest';
import type { PrincipalLimits } from '../../src/auth/allowance.js';
import { Holdings } from '../../src/auth/holdings.js';
import { createAuth } from '../../src/auth/index.js';
import { type Answer, clearScene, pause, stage } from '../scene.js';
import { bearer, keyFile } from './issuer.js';

afterEach(clearScene);

async function limited(limits: Partial<PrincipalLimits>) {
  const { path, keys } = await keyFile({ ada: ['lock:own'], bob: ['lock:own'] });
  const scene = await stage({ auth: createAuth({ apiKeys: path, limits }) });
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
      'key:ada holds, or asks for, 3 shares of this lock already, which is the limit.',
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

it('requests that wait, and locks, are counted until they are over', async () => {
  const holdings = new Holdings();
  const finish = holdings.ask('own/a', true);
  holdings.keep('own/a', 'p1.1', 60);
  holdings.keep('own/a', 'p2.1', 60_000, 7);
  expect([holdings.waiting, holdings.ofKey('own/a'), holdings.size]).toEqual([1, 3, 3]);
  await pause(80);
  holdings.forgetEnded();
  finish();
  expect([holdings.waiting, holdings.ofKey('own/a'), holdings.size]).toEqual([0, 1, 1]);
  holdings.keep('own/a', 'p2.1', 0);
  expect([holdings.ofKey('own/a'), holdings.size]).toEqual([0, 0]);
});
