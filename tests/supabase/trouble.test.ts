/** Locks over HTTP while PostgREST, the database or the way to them is in trouble. */
import { createLocks } from 'holdfast';
import { type Claim, NotExecutedError } from 'holdfast/protocol';
import { supabaseStore } from 'holdfast/supabase';
import { available, startProxy } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clientAt, jwtOf, openScene, type Scene } from './scene.js';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const CLAIM = {
  kind: 'claim',
  owner: 'somebody',
  permits: 1,
  capacity: 1,
  ttlMs: 30_000,
  queue: false,
  inbox: null,
  metadata: null,
} as const;

describe.runIf(available('postgres') && available('postgrest'))('the Supabase store in trouble', () => {
  let scene: Scene;
  let names = 0;
  const fresh = (): string => `job:${names++}`;

  beforeAll(async () => {
    scene = await openScene();
  });
  afterAll(() => scene?.stop());

  it('F7: with PostgREST down, a lease is kept until its end, nothing is taken for busy, and work resumes', async () => {
    const proxy = await startProxy({ host: scene.postgrest.host, port: scene.postgrest.port });
    const client = clientAt(`http://${proxy.host}:${proxy.port}`, jwtOf({ role: 'service_role' }));
    const locks = createLocks(supabaseStore(client));
    const held = await locks.acquire(fresh(), { ttl: '20s' });
    proxy.cut();
    await expect(locks.tryAcquire(fresh())).rejects.toMatchObject({ code: 'store' });
    expect(held.held).toBe(true);
    const waiting = locks.acquire(fresh(), { wait: '30s' });
    await pause(500);
    proxy.pass();
    await (await waiting).release();
    await held.renew();
    await held.release();
    await locks.close({ drain: 0 });
    await proxy.stop();
  });

  it('P14: while PostgREST hangs, the signal aborts at the deadline; killed and started again, work goes on', async () => {
    const { postgrest } = scene;
    const locks = createLocks(supabaseStore(scene.client('service_role')));
    const name = fresh();
    const lease = await locks.acquire(name, { ttl: '2s' });
    await postgrest.pause();
    const began = performance.now();
    await new Promise((resolve) => lease.signal.addEventListener('abort', resolve, { once: true }));
    // The client by itself would wait for minutes.
    expect(performance.now() - began).toBeLessThan(15_000);
    expect(lease.held).toBe(false);
    const waiting = locks.acquire(name, { wait: '60s' });
    await postgrest.kill();
    await postgrest.restart();
    const next = await waiting;
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
    await locks.close({ drain: 0 });
  }, 90_000);

  it('F7: a restart of the database behind it costs no lock', async () => {
    const locks = createLocks(supabaseStore(scene.client('service_role')));
    const lease = await locks.acquire(fresh(), { ttl: '30s' });
    await scene.server.restart();
    await expect
      .poll(
        () =>
          lease.renew('40s').then(
            () => true,
            () => false,
          ),
        { timeout: 25_000, interval: 200 },
      )
      .toBe(true);
    await (await locks.acquire(fresh(), { wait: '30s' })).release();
    expect(lease.held).toBe(true);
    await lease.release();
    await locks.close({ drain: 0 });
  }, 90_000);

  it('while the database behind it is down, it is known that nothing was executed', async () => {
    const store = supabaseStore(scene.client('service_role'));
    await scene.server.kill();
    try {
      const claim = { ...CLAIM, key: `default/${fresh()}`, hold: { process: 'p', number: 1 } };
      // The first call may be sent over a connection that has just broken.
      await expect
        .poll(async () => (await Promise.allSettled(store.apply([claim])))[0], { timeout: 20_000 })
        .toMatchObject({ reason: { name: 'NotExecutedError', message: expect.stringMatching(/PGRST00/) } });
    } finally {
      await scene.server.restart();
    }
  }, 60_000);

  it.each([
    ['25006', 405, /is read-only and cannot store locks/],
    ['53300', 503, /no connection left/],
  ])('a refusal of the server (%s) is known to be one', async (code, status, text) => {
    const error = { code, message: 'the server said no', details: null, hint: null };
    const client = { schema: () => ({ rpc: async () => ({ data: null, error, status }) }) };
    const claim = { ...CLAIM, key: 'default/refused', hold: { process: 'p', number: 1 } };
    const [reply] = supabaseStore(client).apply([claim]);
    await expect(reply).rejects.toThrow(text);
    await expect(reply).rejects.toBeInstanceOf(NotExecutedError);
  });

  it('F4: an answer lost on its way is asked for again, and is the same grant', async () => {
    const proxy = await startProxy({ host: scene.postgrest.host, port: scene.postgrest.port });
    const client = clientAt(`http://${proxy.host}:${proxy.port}`, jwtOf({ role: 'service_role' }));
    const locks = createLocks(supabaseStore(client));
    const name = fresh();
    proxy.loseReplies(1);
    const lease = await locks.acquire(name, { wait: '20s' });
    const { rows } = await scene.pool.query('SELECT token FROM holdfast.locks WHERE name = $1', [name]);
    expect(rows.map(({ token }) => Number(token))).toEqual([lease.token]);
    await lease.release();
    await locks.close({ drain: 0 });
    await proxy.stop();
  });

  it('F30: a row that a long transaction has locked holds up nobody else in the batch', async () => {
    const store = supabaseStore(scene.client('service_role'));
    const keys = [fresh(), fresh(), fresh()];
    const hold = { process: 'somebody', number: 1 };
    const claims = keys.map((key): Claim => ({ ...CLAIM, key, hold }));
    await Promise.all(store.apply(claims));
    const stubborn = await scene.pool.connect();
    try {
      await stubborn.query('BEGIN');
      await stubborn.query('SELECT FROM holdfast.records WHERE key = $1 FOR UPDATE', [keys[1]]);
      const renewals = keys.map(
        (key) => ({ kind: 'renew', key, hold, ttlMs: 60_000, block: false }) as const,
      );
      for (let round = 0; round < 2; round++) {
        const outcomes = await Promise.allSettled(store.apply(renewals));
        expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
        // The server undid it: the outcome is known.
        expect(outcomes[1]).toMatchObject({ reason: { retry: 'at-once' } });
        expect(outcomes[1]).toHaveProperty('reason', expect.any(NotExecutedError));
      }
    } finally {
      await stubborn.query('ROLLBACK');
      stubborn.release();
    }
    await store.close();
  });
});
