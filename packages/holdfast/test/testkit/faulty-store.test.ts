/** The faulty store does to commands and hints what it says, and nothing else. */
import { describe, expect, it } from 'vitest';
import type { Command, ListQuery, Reply, Store, Traits } from '../../src/protocol/index.js';
import { memoryStore } from '../../src/stores/memory.js';
import { conformanceSuite, type Fault, faultyStore } from '../../src/testkit/index.js';
import { claimBy, releaseBy } from '../protocol/table.js';
import { connectionTo } from './connection.js';

const LATE = { lateMsMax: 20 };

/** A store that notes what really arrived. */
function noting(): { readonly store: Store; readonly arrived: Command[] } {
  const store = memoryStore();
  const arrived: Command[] = [];
  return {
    arrived,
    store: {
      ...store,
      apply(commands) {
        arrived.push(...commands);
        return store.apply(commands);
      },
    },
  };
}

function only(fault: Fault) {
  const { store, arrived } = noting();
  const faulty = faultyStore(store, { seed: 1, faults: { [fault]: 1 }, ...LATE });
  const outcome = async (command: Command): Promise<Reply['kind'] | 'rejected' | 'hung'> => {
    const [reply] = faulty.apply([command]);
    const hung = new Promise<'hung'>((resolve) => setTimeout(() => resolve('hung'), 150));
    return await Promise.race([
      (reply as Promise<Reply>).then(
        ({ kind }) => kind,
        () => 'rejected' as const,
      ),
      hung,
    ]);
  };
  return { faulty, arrived, outcome };
}

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 60));

describe('the faulty store', () => {
  it.each([
    ['commandLost', 'rejected', 0],
    ['throwing', 'rejected', 0],
    ['replyLost', 'rejected', 1],
    ['commandLate', 'granted', 1],
    ['replyLate', 'granted', 1],
    ['doubled', 'granted', 2],
    ['overtaken', 'granted', 1],
  ] as const)('%s: the caller sees "%s", and the command arrives %i times', async (fault, seen, times) => {
    const { faulty, arrived, outcome } = only(fault);
    expect(await outcome(claimBy('a', 1))).toBe(seen);
    await settled();
    expect(arrived).toHaveLength(times);
    expect(faulty.struck.get(fault)).toBe(1);
  });

  it('hung: the call never settles, and some of the commands arrive', async () => {
    const { arrived, outcome } = only('hung');
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, (_, number) => outcome(claimBy('a', number + 1))),
    );
    expect(new Set(outcomes)).toEqual(new Set(['hung']));
    expect(arrived.length).toBeGreaterThan(0);
    expect(arrived.length).toBeLessThan(40);
  });

  it('overtaken: a later command arrives first', async () => {
    const { store, arrived } = noting();
    const faulty = faultyStore(store, { seed: 3, faults: { overtaken: 0.5 }, lateMsMax: 10_000 });
    const replies = Array.from({ length: 30 }, (_, index) => faulty.apply([claimBy(`p${index}`, 1)])).flat();
    faulty.heal();
    await Promise.all(replies);
    const order = arrived.map((command) => (command.kind === 'claim' ? command.owner : ''));
    expect(order).toHaveLength(30);
    expect(order).not.toEqual(Array.from({ length: 30 }, (_, index) => `p${index}`));
  });

  it('loses, delays and doubles wake-ups', async () => {
    const heardWith = async (fault: Fault): Promise<{ at: number }[]> => {
      const faulty = faultyStore(memoryStore(), { seed: 5, faults: { [fault]: 1 }, lateMsMax: 40 });
      const heard: { at: number }[] = [];
      await faulty.listen?.('b', () => heard.push({ at: performance.now() }));
      for (const command of [claimBy('a', 1), claimBy('b', 1), releaseBy('a', 1)])
        await faulty.apply([command])[0];
      await settled();
      return heard;
    };
    expect(await heardWith('hintLost')).toHaveLength(0);
    expect(await heardWith('hintLate')).toHaveLength(1);
    expect(await heardWith('hintDoubled')).toHaveLength(2);
  });

  it('strikes as often as told, the same for the same seed, and not at all once healed', async () => {
    const struckBy = async (seed: number): Promise<Record<string, number>> => {
      const faulty = faultyStore(memoryStore(), {
        seed,
        faults: { commandLost: 0.1, doubled: 0.2 },
        lateMsMax: 1,
      });
      const commands = Array.from({ length: 500 }, (_, number) => claimBy('a', number + 1));
      await Promise.allSettled(faulty.apply(commands));
      faulty.heal();
      const before = Object.fromEntries(faulty.struck);
      await Promise.all(faulty.apply(commands));
      expect(Object.fromEntries(faulty.struck)).toEqual(before);
      return before;
    };
    const first = await struckBy(11);
    expect(first.commandLost).toBeGreaterThan(20);
    expect(first.commandLost).toBeLessThan(100);
    expect(first.doubled).toBeGreaterThan(60);
    expect(await struckBy(11)).toEqual(first);
    expect(await struckBy(12)).not.toEqual(first);
  });

  it('passes everything on where no fault is asked for', async () => {
    const { store, arrived } = noting();
    const faulty = faultyStore(store, { seed: 1, faults: {} });
    const replies = await Promise.all(faulty.apply([claimBy('a', 1), claimBy('b', 1), releaseBy('a', 1)]));
    expect(replies.map(({ kind }) => kind)).toEqual(['granted', 'busy', 'released']);
    expect(arrived).toHaveLength(3);
    await faulty.close();
  });
});

/** Its methods are those of the class, and need their instance. */
class ClassStore implements Store {
  readonly name = 'class';
  readonly traits: Traits;
  readonly #inner: Store;

  constructor(inner: Store) {
    this.#inner = inner;
    this.traits = { ...inner.traits, push: false };
  }

  apply(commands: readonly Command[]): readonly Promise<Reply>[] {
    return this.#inner.apply(commands);
  }

  read(key: string): ReturnType<Store['read']> {
    return this.#inner.read(key);
  }

  list(query: ListQuery): ReturnType<Store['list']> {
    return this.#inner.list(query);
  }

  probe(): ReturnType<Store['probe']> {
    return this.#inner.probe();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

describe('a store that is an instance of a class', () => {
  it('can be made faulty', async () => {
    const faulty = faultyStore(new ClassStore(memoryStore()), { seed: 1, faults: {} });
    expect(await faulty.read('k')).toBeNull();
    await faulty.close();
  });

  it('passes the cases of the suite that go through the engine', async () => {
    const store = memoryStore();
    const harness = { name: 'class', open: async () => new ClassStore(connectionTo(store)) };
    const [followed] = conformanceSuite(harness).filter(({ name }) => name.startsWith('P22'));
    await followed?.run();
    expect(followed).toBeDefined();
  });
});
