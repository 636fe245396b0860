/**
 * Twenty contenders in four processes on one key, while everything that can happen does: processes are killed and
 * replaced, suspended past their lease, cut off, robbed of answers, throttled; the server hangs.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Random, seededRandom } from 'holdfast/testkit';
import { afterAll, describe, expect, it } from 'vitest';
import type { Child } from '../child.js';
import { eventually, expectExclusive, type OnFinished, Scene, SOON_MS } from '../scene.js';
import { machineMs } from '../turns.js';
import type { OpenWay, Way } from '../ways.js';
import type { Server, World } from '../world.js';

const PROCESSES = ['a', 'b', 'c', 'd'];
const STORM_MS = 11_000;
const TTL_MS = 1_000;
/** However busy the machine is, everybody had a turn by then unless something hangs. */
const HANG_MS = 120_000;
/** Every so many turns one lasts longer than a lease, and lives on renewals. */
const LONG = { longMs: 1_300, longEvery: 25 } as const;
const MISHAPS = { way: 5, suspended: 2, killed: 2 } as const;

/** One process, its successors, and its way to the server. */
class Corner {
  readonly mishaps: string[] = [];
  readonly way: Way;
  child: Child;
  readonly #scene: Scene<Server>;
  readonly #random: Random;

  private constructor(scene: Scene<Server>, way: Way, child: Child, random: Random) {
    this.#scene = scene;
    this.way = way;
    this.child = child;
    this.#random = random;
  }

  static async open(scene: Scene<Server>, name: string, way: Way, random: Random): Promise<Corner> {
    return new Corner(scene, way, await Corner.start(scene, name, way), random);
  }

  private static start(scene: Scene<Server>, name: string, via: Way): Promise<Child> {
    return scene.contender(name, { via, contenders: 5, ttlMs: TTL_MS, workMs: 5, ...LONG });
  }

  /** One after the other, until then; the first is told, so that every kind happens in every run. */
  async storm(untilMs: number, first: keyof typeof MISHAPS): Promise<void> {
    let next = first;
    while (machineMs() < untilMs) {
      await this.#suffer(next);
      await sleep(this.#random.between(200, 1_600));
      next = this.#random.weighted(MISHAPS);
    }
  }

  async #suffer(mishap: keyof typeof MISHAPS): Promise<void> {
    if (mishap === 'way') {
      this.mishaps.push(this.way.disturb(this.#random));
      await sleep(this.#random.between(100, 1_500));
      this.way.pass();
      return;
    }
    this.mishaps.push(mishap);
    if (mishap === 'suspended') {
      this.child.signal('SIGSTOP');
      await sleep(TTL_MS + this.#random.between(200, 900));
      this.child.signal('SIGCONT');
      return;
    }
    await this.#scene.kill(this.child);
    this.child = await Corner.start(this.#scene, this.child.name, this.way);
  }
}

async function hang(server: Server, random: Random): Promise<void> {
  await sleep(random.between(2_000, 6_000));
  await server.pause();
  await sleep(random.between(300, 1_500));
  await server.resume();
}

async function cornersOf(
  scene: Scene<Server>,
  openWay: OpenWay,
  seed: number,
  onFinished: OnFinished,
): Promise<readonly Corner[]> {
  return await Promise.all(
    PROCESSES.map(async (name, at) => {
      const way = await openWay(scene.server);
      onFinished(() => way.stop());
      return await Corner.open(scene, name, way, seededRandom(seed + at));
    }),
  );
}

/** The token checker's verdict, and the key's: nobody has it when all have gone. */
async function expectNothingLeft(scene: Scene<Server>): Promise<void> {
  const looking = await scene.locks({ ttlMs: TTL_MS });
  const goneMs = machineMs();
  await eventually(
    () => looking.inspect('contended'),
    (info) => (info?.holders.length ?? 0) === 0,
  );
  expect(machineMs() - goneMs).toBeLessThan(TTL_MS + SOON_MS / 2);
  await (await looking.acquire('contended', { wait: SOON_MS })).release();
}

export function crowdFaults(world: World, openWay: OpenWay): void {
  describe(`${world.name}: twenty contenders in four processes`, { timeout: 300_000 }, () => {
    afterAll(() => world.close());

    it('killed, suspended, cut off, robbed of answers, throttled: never two at once, and nothing is left', async ({
      onTestFinished,
    }) => {
      const seed = Number(process.env.HOLDFAST_SEED ?? Math.floor(Math.random() * 2 ** 32));
      console.log(`${world.name}: HOLDFAST_SEED=${seed}`);
      const scene = await Scene.onServer(world, onTestFinished);
      const corners = await cornersOf(scene, openWay, seed, onTestFinished);
      await Promise.all(corners.map(({ child }) => child.more(1)));
      const untilMs = machineMs() + STORM_MS;
      const firsts = ['killed', 'suspended', 'way', 'way'] as const;
      await Promise.all([
        hang(scene.server, seededRandom(seed - 1)),
        ...corners.map((corner, at) => corner.storm(untilMs, firsts[at] ?? 'way')),
      ]);
      // Afterwards all of them go on by themselves, and one that is killed is missed for no longer than its lease.
      await Promise.all(corners.map(({ child }) => child.more(1, HANG_MS)));
      const [first, ...others] = corners;
      if (first) await scene.kill(first.child);
      await Promise.race(others.map(({ child }) => child.more(1, TTL_MS + SOON_MS)));
      const turns = await scene.finish();
      const had = corners.flatMap(({ mishaps }) => mishaps).join(' ');
      console.log(`${world.name}: ${turns.length} turns; ${had}`);
      expectExclusive(turns);
      expect(new Set(turns.map(({ who }) => who)).size).toBeGreaterThan(PROCESSES.length * 2);
      await expectNothingLeft(scene);
    });
  });
}
