/**
 * The conformance suite on the layouts of PostgreSQL: all of it that records with one holder can pass. The second layout
 * has the same statements and fewer names.
 */
import type { Command, Snapshot, Store } from 'holdfast/protocol';
import { conformanceSuite } from 'holdfast/testkit';
import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { runCases } from '../store-talk.js';
import { openFleet, type PostgresFleet } from './postgres-fleet.js';
import { CENTRAL, DISTRIBUTED_LOCKS } from './postgres-software.js';

const PREFIX = 'default/';
const SEQUENCES = 1_000;
/** Cases about names that LockServiceCentral cannot have. */
const AWKWARD = /awkward spelling|list has/;

/** The keys of the suite as names that a layout has, and back. */
interface Names {
  nameOf(key: string): string;
  keyOf(name: string): string;
}

/** Names of up to 255 letters. The longer ones of the suite differ, and sort, by their last letters. */
class Letters implements Names {
  readonly #long = new Map<string, string>();

  nameOf(key: string): string {
    const letters = [...key];
    if (letters.length <= 255) return key;
    const name = [...letters.slice(0, 150), ...letters.slice(-100)].join('');
    this.#long.set(name, key);
    return name;
  }

  keyOf(name: string): string {
    return this.#long.get(name) ?? name;
  }
}

const NO_SLASHES: Names = {
  nameOf: (key) => key.replaceAll('/', '_s_'),
  keyOf: (name) => name.replaceAll('_s_', '/'),
};

function withNames(store: Store, names: Names): Store {
  const outer = (key: string): string => PREFIX + names.nameOf(key);
  const shown = (one: Snapshot): Snapshot => ({ ...one, key: names.keyOf(one.key.slice(PREFIX.length)) });
  return {
    ...store,
    apply: (commands) => store.apply(commands.map((one): Command => ({ ...one, key: outer(one.key) }))),
    async read(key) {
      const snapshot = await store.read(outer(key));
      return snapshot && { ...snapshot, key };
    },
    async *list({ prefix, after, ...limit }) {
      const query = { ...limit, prefix: outer(prefix), ...(after !== undefined && { after: outer(after) }) };
      for await (const one of store.list(query)) yield shown(one);
    },
  };
}

function suiteOn(fleet: PostgresFleet, names: Names, without: RegExp | null): void {
  const seed = Number(process.env.HOLDFAST_SEED ?? Math.floor(Math.random() * 2 ** 31));
  const cases = conformanceSuite(
    {
      name: `PostgreSQL, layout ${fleet.layout.name}`,
      open: async () => withNames(fleet.store(), names),
      forget: (key) => fleet.forget(names.nameOf(key)),
      spoil: (key) => fleet.change(names.nameOf(key), `holdfast = '{"version": 99}'`),
      doubtMs: 200,
      exclusive: true,
    },
    // More at once only wait for the connections of the pool.
    { seed, sequences: SEQUENCES, atOnce: 60 },
  );
  describe(`${fleet.layout.name} (HOLDFAST_SEED=${seed})`, () => {
    runCases(without ? cases.filter(({ name }) => !without.test(name)) : cases);
  });
}

describe.runIf(available('postgres'))('the table distributed_locks', () => {
  suiteOn(openFleet(DISTRIBUTED_LOCKS), new Letters(), null);
});

describe.runIf(available('postgres'))('the table of LockServiceCentral', () => {
  suiteOn(openFleet(CENTRAL), NO_SLASHES, AWKWARD);
});
