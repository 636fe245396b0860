/** The server is well; what is between it and its users is not. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Locks, StoreError } from 'holdfast';
import { seededRandom } from 'holdfast/testkit';
import type { TcpProxy } from 'holdfast-test-servers';
import { afterAll, describe, expect, it } from 'vitest';
import { eventually, expectExclusive, later, lossOf, type OnFinished, Scene, SOON_MS } from '../scene.js';
import { machineMs } from '../turns.js';
import type { World } from '../world.js';

const TTL_MS = 1_500;

/** Locks that come through a proxy. */
async function behindProxy(world: World, onFinished: OnFinished, ttlMs: number): Promise<BehindProxy> {
  const scene = await Scene.open(world, onFinished);
  const proxy = await scene.proxy();
  return { scene, proxy, locks: await scene.locks({ via: proxy, ttlMs }) };
}

interface BehindProxy {
  readonly scene: Scene;
  readonly proxy: TcpProxy;
  readonly locks: Locks;
}

export function networkFaults(world: World): void {
  describe.concurrent(`${world.name}: the network`, { timeout: 60_000 }, () => {
    afterAll(() => world.close());

    it('F4: a claim whose answer is lost is the same grant when asked again: same token, one holder', async ({
      onTestFinished,
    }) => {
      const { scene, proxy, locks } = await behindProxy(world, onTestFinished, 20_000);
      const witness = await scene.locks();
      await (await locks.acquire('warm')).release();
      proxy.loseReplies();
      const acquiring = later(locks.acquire('k', { wait: '30s' }));
      const holders = async () => (await witness.inspect('k'))?.holders ?? [];
      const [granted] = await eventually(holders, ({ length }) => length === 1);
      expect(await witness.tryAcquire('k')).toBeNull();
      proxy.pass();
      const lease = await acquiring;
      expect(lease.token).toBe(granted?.token);
      expect(await holders()).toHaveLength(1);
      await lease.release();
      const next = await witness.acquire('k', { wait: SOON_MS });
      expect(next.token).toBeGreaterThan(lease.token);
      scene.expectNothingUnhandled();
    });

    it('F5: who gave up while the answer was missing leaves nothing behind, however long the lease', async ({
      onTestFinished,
    }) => {
      const { scene, proxy, locks } = await behindProxy(world, onTestFinished, 60_000);
      const witness = await scene.locks();
      await (await locks.acquire('warm')).release();
      proxy.loseReplies();
      const giveUp = new AbortController();
      const acquiring = later(locks.acquire('k', { wait: '30s', signal: giveUp.signal }));
      await eventually(
        () => witness.inspect('k'),
        (info) => info?.holders.length === 1,
      );
      giveUp.abort(new Error('no longer needed'));
      await expect(acquiring).rejects.toThrow('no longer needed');
      proxy.pass();
      await witness.acquire('k', { wait: '30s' });
      scene.expectNothingUnhandled();
    });

    it('F6: a release whose answer is lost has freed the key, and resolves once it is heard', async ({
      onTestFinished,
    }) => {
      const { scene, proxy, locks } = await behindProxy(world, onTestFinished, 20_000);
      const witness = await scene.locks({ ttlMs: 20_000 });
      const lease = await locks.acquire('k');
      proxy.loseReplies();
      const outcome = lease.release().then(
        () => 'released',
        (error: unknown) => error,
      );
      const next = await witness.acquire('k', { wait: SOON_MS });
      proxy.pass();
      // Nobody awaits a release for ever: a machine too busy to reconnect in time tells that it is unknown.
      const said = await outcome;
      if (said !== 'released') expect(said).toBeInstanceOf(StoreError);
      await sleep(300);
      next.assertHeld();
      await next.renew();
      scene.expectNothingUnhandled();
    });

    it('F7, F8: renewals whose answers are lost are jeopardy, not loss', async ({ onTestFinished }) => {
      const { scene, proxy, locks } = await behindProxy(world, onTestFinished, 9_000);
      const lease = await locks.acquire('k');
      proxy.loseReplies();
      await new Promise((resolve) => locks.on('jeopardy', resolve));
      lease.assertHeld();
      proxy.pass();
      await new Promise((resolve) => locks.on('renewed', resolve));
      lease.assertHeld();
      expect(lease.signal.aborted).toBe(false);
      scene.expectNothingUnhandled();
    });

    it('P16, F8: renewals that fail for good: told by the signal, held says no, nothing unhandled', async ({
      onTestFinished,
    }) => {
      const { scene, proxy, locks } = await behindProxy(world, onTestFinished, TTL_MS);
      const lease = await locks.acquire('k');
      const lost = lossOf(lease);
      proxy.cut();
      const cutMs = machineMs();
      expect((await lost) - cutMs).toBeLessThan(TTL_MS + SOON_MS / 2);
      expect(lease.held).toBe(false);
      await expect(locks.acquire('k', { wait: 300 })).rejects.toBeInstanceOf(StoreError);
      proxy.pass();
      await (await locks.acquire('k', { wait: '30s' })).release();
      // Nothing that the outage left behind makes the end wait or fail.
      await locks.close({ drain: 0 });
      scene.expectNothingUnhandled();
    });

    for (const end of ['flows again', 'is cut at last'] as const) {
      it(`a half-open connection that ${end}: the lease is lost in time, others proceed, work resumes`, async ({
        onTestFinished,
      }) => {
        const { scene, proxy, locks } = await behindProxy(world, onTestFinished, TTL_MS);
        const lease = await locks.acquire('k');
        const lost = lossOf(lease);
        proxy.hang();
        const hungMs = machineMs();
        const next = await (await scene.locks({ ttlMs: 20_000 })).acquire('k', { wait: '30s' });
        expect(lease.held, 'held by two').toBe(false);
        expect(machineMs() - hungMs).toBeLessThan(TTL_MS + SOON_MS / 2);
        await lost;
        expect(next.token).toBeGreaterThan(lease.token);
        if (end === 'is cut at last') proxy.cut();
        proxy.pass();
        // What the dead connection still had to say reaches the server now, and harms nobody.
        await (await locks.acquire('elsewhere', { wait: '30s' })).release();
        next.assertHeld();
        await next.release();
        await (await locks.acquire('k', { wait: '30s' })).release();
        await locks.close({ drain: 0 });
        scene.expectNothingUnhandled();
      });
    }

    it('P15: a grant that is over when its answer comes is never returned as acquired', async ({
      onTestFinished,
    }) => {
      const { scene, proxy, locks } = await behindProxy(world, onTestFinished, 600);
      await (await locks.acquire('warm')).release();
      proxy.delay(900);
      const outcomes = await Promise.allSettled(
        ['k', 'l'].map((key) => locks.acquire(key, { wait: '3s' }).then((lease) => lease.remainingMs)),
      );
      expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
      proxy.pass();
      const witness = await scene.locks();
      await witness.acquire('k', { wait: SOON_MS });
      const lease = await locks.acquire('l', { wait: '30s' });
      lease.assertHeld();
      scene.expectNothingUnhandled();
    });

    it('F2: a late answer is counted from before the question was sent', async ({ onTestFinished }) => {
      const { proxy, locks } = await behindProxy(world, onTestFinished, 8_000);
      await (await locks.acquire('warm')).release();
      proxy.delay(700);
      const lease = await locks.acquire('k', { wait: '20s', renew: false });
      expect(lease.remainingMs).toBeGreaterThan(0);
      expect(lease.remainingMs).toBeLessThan(8_000 - 700);
    });

    it('connections cut, hung, robbed of their answers and slowed at random: never two at once', async ({
      onTestFinished,
    }) => {
      const seed = Number(process.env.HOLDFAST_SEED ?? Math.floor(Math.random() * 2 ** 32));
      console.log(`${world.name}: HOLDFAST_SEED=${seed}`);
      const scene = await Scene.open(world, onTestFinished);
      const names = ['a', 'b', 'c'];
      const proxies = await Promise.all(names.map(() => scene.proxy()));
      const fleet = await Promise.all(
        names.map((name, at) => scene.contender(name, { via: proxies[at], ttlMs: 800, longMs: 1_000 })),
      );
      await Promise.all(fleet.map((child) => child.more(2)));
      const disturb = async (proxy: TcpProxy, at: number): Promise<void> => {
        const random = seededRandom(seed + at);
        for (let mishap = 0; mishap < 4; mishap++) {
          const kind = random.pick(['cut', 'hang', 'loseReplies', 'delay'] as const);
          if (kind === 'delay') proxy.delay(random.between(50, 1_000));
          else proxy[kind]();
          await sleep(random.between(100, 1_500));
          if (kind === 'hang' && random.chance(0.5)) proxy.cut();
          proxy.pass();
          await sleep(random.between(50, 400));
        }
      };
      await Promise.all(proxies.map(disturb));
      await Promise.all(fleet.map((child) => child.more(1, 40_000)));
      const turns = await scene.finish();
      expectExclusive(turns);
    });
  });
}
