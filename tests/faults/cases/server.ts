/** The server itself restarts or hangs, or is left by a process that dies or sleeps. */
import { setTimeout as sleep } from 'node:timers/promises';
import { LeaseLostError, StoreError } from 'holdfast';
import { afterAll, describe, expect, it } from 'vitest';
import { crowdings, staleTokens } from '../journal.js';
import { eventually, expectExclusive, later, lossOf, Scene, SOON_MS } from '../scene.js';
import { machineMs, workUnder } from '../turns.js';
import type { World } from '../world.js';

const TTL_MS = 1_500;

export function serverFaults(world: World): void {
  const side = world.oneServer ? describe.sequential : describe.concurrent;
  side(`${world.name}: the server`, { timeout: 180_000 }, () => {
    afterAll(() => world.close());

    it('restarts under processes that contend: tokens rise, nobody crashes, work resumes by itself', async ({
      onTestFinished,
    }) => {
      const scene = await Scene.onServer(world, onTestFinished);
      const fleet = await Promise.all(['a', 'b', 'c'].map((name) => scene.contender(name)));
      await Promise.all(fleet.map((child) => child.more(2)));
      await scene.server.restart();
      const restartedMs = machineMs();
      await Promise.all(fleet.map((child) => child.more(3)));
      const turns = await scene.finish();
      expect(staleTokens(turns)).toEqual([]);
      // What a server forgets nobody can exclude: there, only what was granted since counts.
      const counted = world.durable ? turns : turns.filter(({ fromMs }) => fromMs > restartedMs);
      expect(crowdings(counted)).toEqual([]);
    });

    if (world.durable) {
      for (const how of ['restarts', 'is killed and started again'] as const) {
        it(`F7: ${how}, and a lease with time left outlives it, token and all`, async ({
          onTestFinished,
        }) => {
          const scene = await Scene.onServer(world, onTestFinished);
          const locks = await scene.locks({ ttlMs: 300_000 });
          const lease = await locks.acquire('k');
          if (how !== 'restarts') await scene.server.kill();
          await scene.server.restart();
          const renewed = new Promise((resolve) => locks.on('renewed', resolve));
          await lease.renew();
          await renewed;
          lease.assertHeld();
          const info = await (await scene.locks()).inspect('k');
          expect(info?.holders.map(({ token }) => token)).toEqual([lease.token]);
        });
      }
    } else {
      it('F10, F13: restarts empty: the holder is told at its next renewal, and the token still rises', async ({
        onTestFinished,
      }) => {
        const scene = await Scene.onServer(world, onTestFinished);
        const locks = await scene.locks({ ttlMs: 6_000 });
        const lease = await locks.acquire('k');
        const lost = lossOf(lease);
        await scene.server.restart();
        const next = await (await scene.locks({ ttlMs: 20_000 })).acquire('k', { wait: SOON_MS });
        expect(next.token).toBeGreaterThan(lease.token);
        await lost;
        expect(lease.held).toBe(false);
        next.assertHeld();
      });
    }

    it('P14, F3: hangs, and the signal aborts at the deadline all the same; then work resumes by itself', async ({
      onTestFinished,
    }) => {
      const scene = await Scene.onServer(world, onTestFinished);
      const locks = await scene.locks({ ttlMs: TTL_MS });
      const other = await scene.locks({ ttlMs: TTL_MS });
      await (await other.acquire('warm')).release();
      const lease = await locks.acquire('k');
      const lost = lossOf(lease);
      await scene.server.pause();
      const pausedMs = machineMs();
      const waiting = later(other.acquire('k', { wait: '50s' }));
      await expect(other.tryAcquire('free')).rejects.toBeInstanceOf(StoreError);
      // Nothing is answered here: only the lease's own timer can have told.
      expect((await lost) - pausedMs).toBeLessThan(TTL_MS + SOON_MS / 2);
      expect(lease).toMatchObject({ held: false, state: 'lost', remainingMs: 0 });
      expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
      expect(() => lease.assertHeld()).toThrow(LeaseLostError);
      await scene.server.resume();
      const next = await waiting;
      expect(next.token).toBeGreaterThan(lease.token);
      await next.release();
      await (await locks.acquire('k', { wait: SOON_MS })).release();
      scene.expectNothingUnhandled();
    });

    it('hangs for a moment and for longer than a lease, under processes that contend: never two at once', async ({
      onTestFinished,
    }) => {
      const scene = await Scene.onServer(world, onTestFinished);
      const fleet = await Promise.all(
        ['a', 'b', 'c'].map((name) => scene.contender(name, { ttlMs: 800, longMs: 1_000 })),
      );
      for (const hangMs of [150, 1_500, 1_100]) {
        await Promise.all(fleet.map((child) => child.more(1)));
        await scene.server.pause();
        await sleep(hangMs);
        await scene.server.resume();
      }
      await Promise.all(fleet.map((child) => child.more(1)));
      expectExclusive(await scene.finish());
    });

    it('hangs for good: closing ends in time, and nothing keeps the process alive', async ({
      onTestFinished,
    }) => {
      const scene = await Scene.onServer(world, onTestFinished);
      const child = await scene.contender('a', { abandons: true });
      await child.more(1);
      await scene.server.pause();
      expect(await child.finish(30_000), child.story).toBe(0);
      expect(child.lines, child.story).toContain('closed');
      expect(child.saying('UNHANDLED'), child.story).toEqual([]);
    });

    it('F21: a process that is killed with the key in hand leaves it to the next within its lease', async ({
      onTestFinished,
    }) => {
      const scene = await Scene.onServer(world, onTestFinished);
      const locks = await scene.locks();
      const holder = await scene.contender('holder', { key: 'k', ttlMs: TTL_MS, workMs: 60_000 });
      await eventually(
        () => locks.inspect('k'),
        (info) => info?.holders.length === 1,
      );
      const waiting = later(locks.acquire('k', { wait: '30s' }));
      await holder.kill();
      const killedMs = machineMs();
      await waiting;
      expect(machineMs() - killedMs).toBeLessThan(TTL_MS + SOON_MS / 2);
    });

    it('F1: a process that is suspended past its lease learns on waking that it lost, and never held beside the next', async ({
      onTestFinished,
    }) => {
      const scene = await Scene.onServer(world, onTestFinished);
      const locks = await scene.locks({ ttlMs: 20_000 });
      const sleeper = await scene.contender('sleeper', { ttlMs: TTL_MS, workMs: 60_000 });
      await sleeper.said('began');
      const waiting = later(locks.acquire('contended', { wait: '50s' }));
      sleeper.signal('SIGSTOP');
      const stoppedMs = machineMs();
      const next = await waiting;
      const working = later(workUnder('next', next, 500));
      await sleep(Math.max(0, TTL_MS + 500 - (machineMs() - stoppedMs)));
      sleeper.signal('SIGCONT');
      await sleeper.said('lost');
      const worked = await working;
      // Nothing that the sleeper still had to say took the key away.
      next.assertHeld();
      await next.release();
      await eventually(
        () => Promise.resolve(sleeper.saying('began').length),
        (count) => count > 1,
      );
      await scene.kill(sleeper);
      expect(worked).not.toBeNull();
      expectExclusive([...(worked ? [worked] : []), ...(await scene.finish())]);
    });
  });
}
