/** Schedules in real time, in five processes whose clocks are set apart. */
import { afterEach, describe, expect, it } from 'vitest';
import { Child } from '../faults/child.js';
import { STORES } from '../handoff/stores.js';
import { atTheEnd, clearScene, until } from '../scene.js';

const INSTANCE = new URL('./instance.js', import.meta.url);
const TICKS = 60;
const EVERY_MS = 1_000;
/** As far apart as is allowed. */
const OFFSETS_MS = [0, 15_000, -15_000, 40, -7_300];
/** On SQLite all processes are on one machine, and so have one clock. */
const CASES = [
  ['SQLite', [0, 0, 0, 0, 0]],
  ['Redis', OFFSETS_MS],
  ['PostgreSQL', OFFSETS_MS],
] as const;

afterEach(clearScene);

const numbers = (child: Child, word: string): readonly number[] =>
  child.saying(`${word} `).map((line) => Number(line.slice(word.length + 1)));

class Instances {
  readonly all: readonly Child[];

  constructor(url: string, offsetsMs: readonly number[]) {
    this.all = offsetsMs.map((offMs, at) => {
      const child = new Child(`instance ${at}`, INSTANCE, [url, `i${at}`, String(EVERY_MS)], offMs);
      atTheEnd(() => child.kill());
      return child;
    });
  }

  /** Ticks that were run, in order; one that was run twice is there twice. */
  get ran(): readonly number[] {
    return this.all.flatMap((child) => numbers(child, 'ran')).sort((one, other) => one - other);
  }

  get twice(): readonly number[] {
    const { ran } = this;
    return ran.filter((tick, at) => ran[at - 1] === tick);
  }

  /** The first tick that the instance with the fastest clock sees. */
  async first(): Promise<number> {
    for (const child of this.all) await child.said('ready ');
    return Math.max(...this.all.flatMap((child) => numbers(child, 'ready')));
  }

  get errors(): readonly string[] {
    return this.all.flatMap((child) => child.saying('ERROR'));
  }
}

for (const [name, offsetsMs] of CASES) {
  const store = STORES.find((each) => each.name === name);
  describe.runIf(store?.isHere)(`a schedule in five processes on ${name}`, () => {
    it(`runs each of ${TICKS} ticks exactly once, and ends without a trace`, async () => {
      const place = await store?.start();
      if (!place) throw new Error(`There is no ${name}.`);
      atTheEnd(() => place.stop());
      const instances = new Instances(place.url, offsetsMs);
      const first = await instances.first();
      await until(() => (instances.ran.at(-1) ?? 0) >= first + (TICKS - 1) * EVERY_MS, 'all ticks', 180_000);
      for (const child of instances.all) expect(await child.finish(), child.story).toBe(0);
      expect(instances.errors).toEqual([]);
      expect(instances.twice).toEqual([]);
      const ran = new Set(instances.ran);
      const wanted = Array.from({ length: TICKS }, (_, at) => first + at * EVERY_MS);
      expect(wanted.filter((tick) => !ran.has(tick))).toEqual([]);
    });

    it('of which the one that runs it is killed: no tick twice, and the others go on', async () => {
      const place = await store?.start();
      if (!place) throw new Error(`There is no ${name}.`);
      atTheEnd(() => place.stop());
      const instances = new Instances(place.url, offsetsMs);
      await instances.first();
      for (let kills = 0; kills < 3; kills++) {
        const before = instances.ran.length;
        await until(() => instances.ran.length >= before + 3, 'three more ticks', 120_000);
        const last = instances.ran.at(-1) ?? 0;
        const runner = instances.all.find((child) => numbers(child, 'ran').includes(last));
        await runner?.kill();
      }
      const before = instances.ran.length;
      await until(() => instances.ran.length >= before + 3, 'three more ticks', 120_000);
      expect(instances.twice).toEqual([]);
    });
  });
}
