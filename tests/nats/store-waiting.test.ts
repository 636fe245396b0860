/** Waiting, waking and renewing, as users see it, through trouble. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from 'holdfast';
import { natsStore } from 'holdfast/nats';
import type { Why } from 'holdfast/protocol';
import { available, type NatsServer, startNats } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoreLog } from '../faults/store-log.js';
import { claimOf, connectTo, openStore, releaseOf, say, tapped } from './store-scene.js';

async function until(what: string, msMax: number, isSo: () => boolean): Promise<void> {
  for (const since = performance.now(); performance.now() - since < msMax; ) {
    if (isSo()) return;
    await sleep(10);
  }
  throw new Error(`Not within ${msMax} ms: ${what}`);
}

describe.runIf(available('nats'))('waiting on NATS', () => {
  let server: NatsServer;

  beforeAll(async () => {
    server = await startNats({ own: true });
  });

  afterAll(async () => {
    await server?.stop();
  });

  it('P22: who waits is woken by the release, not by the end of the lease or a poll', async () => {
    const log = new StoreLog();
    const [here, there] = [
      createLocks(await openStore([server.url])),
      createLocks(log.on(await openStore([server.url]))),
    ];
    // The first releases may come before it listens.
    for (const untilMs = performance.now() + 60_000; log.turns.length < 3; ) {
      expect(performance.now(), 'it was not woken').toBeLessThan(untilMs);
      const asked = log.timesOf('busy', 'default/p22').length;
      const held = await here.acquire('p22', { ttl: 60_000 });
      const waiting = there.acquire('p22', { wait: 30_000, ttl: 60_000 });
      await until('it waits', 30_000, () => log.timesOf('busy', 'default/p22').length > asked);
      await held.release();
      await (await waiting).release();
    }
    await Promise.all([here.close({ drain: 0 }), there.close({ drain: 0 })]);
  });

  it('P20: renewals that fail for a while do not stop the others, and the lease lives on', async () => {
    const connection = await connectTo(server.url);
    const tap = tapped(connection);
    const locks = createLocks(natsStore(tap.connection));
    const lease = await locks.acquire('p20', { ttl: 1_500 });
    let failures = 0;
    tap.before = (subject) => {
      if (subject.startsWith('$KV.') && failures < 3) {
        failures += 1;
        throw new Error('the network is away');
      }
    };
    await sleep(4_000);
    expect(failures).toBe(3);
    expect(lease.held).toBe(true);
    expect(lease.signal.aborted).toBe(false);
    await lease.release();
    await locks.close({ drain: 0 });
    await connection.close();
  });

  it('P21: a renewal that races a release never loses the release', async () => {
    const [here, there] = [
      createLocks(await openStore([server.url])),
      createLocks(await openStore([server.url])),
    ];
    for (let round = 0; round < 30; round++) {
      const lease = await here.acquire('p21', { ttl: 30_000 });
      const renewing = lease.renew().then(
        () => 'renewed',
        () => 'over',
      );
      if (round % 3 > 0) await sleep(round % 3);
      await lease.release();
      await renewing;
      const next = await there.tryAcquire('p21');
      expect(next, `round ${round}`).not.toBeNull();
      await next?.release();
    }
    await Promise.all([here.close({ drain: 0 }), there.close({ drain: 0 })]);
  });

  it('F32: wake-ups arrive again after the server was away, and the store says when none arrive', async () => {
    const own = await startNats({ own: true });
    const [connection, store] = [await connectTo(own.url), await openStore([own.url])];
    const listening = natsStore(connection);
    const heard: { key: string; why: Why }[] = [];
    const hearing: boolean[] = [];
    await listening.listen?.(
      'an inbox',
      (key, why) => heard.push({ key, why }),
      (hears) => hearing.push(hears),
    );
    const held = claimOf('k', 'holder', { ttlMs: 60_000 });
    await say(store, held);
    const waiting = claimOf('k', 'waits', { inbox: 'an inbox' });
    expect((await say(listening, waiting)).kind).toBe('busy');
    await own.kill();
    await until('says that it hears nothing', 60_000, () => hearing.at(-1) === false);
    await own.restart();
    await until('says that it hears again', 60_000, () => hearing.at(-1) === true);
    // The locks are still there.
    let released = '';
    for (let tries = 0; tries < 50 && released !== 'released'; tries++) {
      released = await say(store, releaseOf(held)).then(
        ({ kind }) => kind,
        () => 'unknown',
      );
      if (released !== 'released') await sleep(100);
    }
    expect(released).toBe('released');
    // Its place in the queue may have ended meanwhile: then the next claim finds the key free.
    if (heard.length === 0) {
      const next = await say(listening, waiting);
      if (next.kind !== 'granted' && next.kind !== 'withdrawn')
        await until('the hint', 60_000, () => heard.length > 0);
    }
    const second = claimOf('k2', 'holder', { ttlMs: 60_000 });
    await say(store, second);
    await say(listening, claimOf('k2', 'waits', { inbox: 'an inbox' }));
    await say(store, releaseOf(second));
    await until('a hint after the reconnect', 60_000, () =>
      heard.some(({ key, why }) => key === 'k2' && why === 'turn'),
    );
    await Promise.all([listening.close(), store.close()]);
    await connection.close();
    await own.stop();
  });

  it('a listener whose connection closes for good is told so, and nothing throws', async () => {
    const connection = await connectTo(server.url);
    const store = natsStore(connection);
    const hearing: boolean[] = [];
    const stop = await store.listen?.(
      'i',
      () => undefined,
      (hears) => hearing.push(hears),
    );
    await connection.close();
    await until('says that it hears nothing', 60_000, () => hearing.at(-1) === false);
    await stop?.();
    await expect(say(store, claimOf('k', 'p'))).rejects.toThrow();
    await store.close();
  });

  it('P19: a waiter costs the server a few requests a second', async () => {
    const holder = createLocks(await openStore([server.url]));
    const connection = await connectTo(server.url);
    const tap = tapped(connection);
    const waiting = createLocks(natsStore(tap.connection));
    const held = await holder.acquire('p19', { ttl: 60_000 });
    const gaveUp = new AbortController();
    const waits = Array.from({ length: 200 }, () =>
      waiting.acquire('p19', { wait: 60_000, signal: gaveUp.signal }).then(
        () => 'acquired',
        (error: unknown) => (error === gaveUp.signal.reason ? 'gave up' : String(error)),
      ),
    );
    await sleep(700);
    tap.calls.length = 0;
    await sleep(3_000);
    expect(tap.calls.length / 3).toBeGreaterThan(0);
    expect(tap.calls.length / 3).toBeLessThanOrEqual(6);
    gaveUp.abort(new Error('enough'));
    expect(new Set(await Promise.all(waits))).toEqual(new Set(['gave up']));
    await held.release();
    await Promise.all([holder.close({ drain: 0 }), waiting.close({ drain: 0 })]);
    await connection.close();
  });
});
