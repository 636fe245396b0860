/** Lists: which keys, in which order, and page by page. */
import assert from 'node:assert/strict';
import { type ListQuery, type Store, UnsupportedError } from '../../protocol/index.js';
import {
  type CaseContext,
  type CaseDefinition,
  claimOf,
  releaseOf,
  send,
  sendAll,
  viewsOf,
} from './case-context.js';

/** By code points. By UTF-16 the last two change places; in a dictionary, most do. */
const IN_ORDER = ['%', '_', 'a%', 'a_1', 'a_2', 'b', '\u00e9', '\ufffd', '\u{1f512}'];

export const listing: readonly CaseDefinition[] = [
  {
    name: 'a list has the keys in use that start with its prefix, in order, and no more than asked',
    async try({ store, key, process }) {
      const base = key();
      const own = process();
      const names = ['b', 'a_1', 'a%2', 'aX3', 'A_4', 'gone', 'waits'].map((name) => `${base}/${name}`);
      await sendAll(
        store,
        names.map((name, index) => claimOf(name, { process: own, number: index + 1 })),
      );
      await send(store, releaseOf(`${base}/gone`, { process: own, number: 6 }));
      const keysOf = async (prefix: string, limit?: number): Promise<string[]> =>
        namesOf(store, `${base}/`, { prefix: base + prefix, ...(limit !== undefined && { limit }) });
      assert.deepEqual(await keysOf('/'), ['A_4', 'a%2', 'aX3', 'a_1', 'b', 'waits']);
      assert.deepEqual(await keysOf('/a_'), ['a_1'], 'a wildcard in a prefix');
      assert.deepEqual(await keysOf('/a%'), ['a%2'], 'a wildcard in a prefix');
      assert.deepEqual(await keysOf('/', 2), ['A_4', 'a%2']);
      assert.deepEqual(await keysOf('/', 0), []);
      assert.deepEqual(await keysOf('/nothing'), []);
    },
  },
  {
    name: 'behind a key, in use or not, a list has all that sort behind it by code points',
    async try(context) {
      const { store, base } = await withOddKeys(context);
      const listed = (prefix: string, after: string, limit?: number): Promise<string[]> =>
        namesOf(store, base, { prefix: base + prefix, after, ...(limit !== undefined && { limit }) });
      for (const [index, name] of IN_ORDER.entries()) {
        assert.deepEqual(await listed('', base + name), IN_ORDER.slice(index + 1), `behind ${name}`);
      }
      assert.deepEqual(await listed('', `${base}gone`), IN_ORDER.slice(6), 'behind a key that is gone');
      assert.deepEqual(await listed('', `${base}\u{10ffff}`), [], 'behind all');
      assert.deepEqual(await listed('', ''), IN_ORDER, 'behind nothing');
      assert.deepEqual(await listed('a_', `${base}a_1`), ['a_2']);
      assert.deepEqual(await listed('a_', `${base}%`), ['a_1', 'a_2'], 'behind a key before the prefix');
      assert.deepEqual(await listed('a_', `${base}b`), [], 'behind a key behind the prefix');
      assert.deepEqual(await listed('b', `${base}b`), [], 'behind a key that is the prefix');
      assert.deepEqual(await listed('', `${base}_`, 2), ['a%', 'a_1']);
      assert.deepEqual(await listed('a', `${base}a%`, 1), ['a_1']);
    },
  },
  {
    name: 'page by page, a list has every key once',
    async try(context) {
      const { store, base } = await withOddKeys(context);
      const seen = await namesOf(store, base, { prefix: base, limit: 2 });
      for (let page = 2; page <= 5; page++) {
        seen.push(...(await namesOf(store, base, { prefix: base, limit: 2, after: base + seen.at(-1) })));
      }
      assert.deepEqual(seen, IN_ORDER);
    },
  },
  {
    name: 'a record of a newer format ends a list with its refusal, and hides neither the keys before it nor those behind it',
    applies: (harness) => harness.spoil !== undefined,
    async try({ harness, store, key, process }) {
      const base = `${key()}/`;
      const own = process();
      const claims = ['a', 'b', 'newer', 'z'].map((name, index) =>
        claimOf(base + name, { process: own, number: index + 1 }, { ttlMs: 60_000 }),
      );
      await sendAll(store, claims);
      await harness.spoil?.(`${base}newer`);
      const seen: string[] = [];
      const whole = async (): Promise<void> => {
        for await (const view of store.list({ prefix: base })) seen.push(view.key.slice(base.length));
      };
      await assert.rejects(whole, UnsupportedError);
      assert.deepEqual(seen, ['a', 'b'], 'before it');
      assert.deepEqual(
        await namesOf(store, base, { prefix: base, limit: 2 }),
        ['a', 'b'],
        'no more than asked',
      );
      assert.deepEqual(
        await namesOf(store, base, { prefix: base, after: `${base}newer` }),
        ['z'],
        'behind it',
      );
    },
  },
];

/** The keys of `IN_ORDER`, acquired in another order, and one that is free again. */
async function withOddKeys({ store, key, process }: CaseContext): Promise<{ store: Store; base: string }> {
  const base = `${key()}/`;
  const own = process();
  const claims = [...IN_ORDER, 'gone']
    .toReversed()
    .map((name, index) => claimOf(base + name, { process: own, number: index + 1 }, { ttlMs: 60_000 }));
  await sendAll(store, claims);
  await send(store, releaseOf(`${base}gone`, { process: own, number: 1 }));
  return { store, base };
}

async function namesOf(store: Store, base: string, query: ListQuery): Promise<string[]> {
  return (await viewsOf(store, query)).map((view) => view.key.slice(base.length));
}
