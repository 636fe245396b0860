import fc from 'fast-check';
import { httpStore } from 'holdfast/http';
import { memoryStore } from 'holdfast/memory';
import { afterEach, describe, expect, it } from 'vitest';
import { allows, rightsOf } from '../../src/auth/rights.js';
import { atTheEnd, clearScene, listen, STORES, type Stage, stage, until } from '../scene.js';
import { byRights, fill, observed } from './full-store.js';

afterEach(clearScene);

interface Listed {
  readonly keys: readonly string[];
  readonly next: string | null;
  readonly bytes: number;
}

async function page({ call }: Stage, query: Readonly<Record<string, string>>, rights = ''): Promise<Listed> {
  const { status, body, text } = await call('GET', `/v2/locks?${new URLSearchParams(query)}`, undefined, {
    'x-rights': rights,
  });
  expect([status, text]).toEqual([200, text]);
  const keys = (body.locks as { key: string }[]).map(({ key }) => key);
  return { keys, next: body.next as string | null, bytes: Buffer.byteLength(text) };
}

async function pages(scene: Stage, query: Readonly<Record<string, string>>, rights = ''): Promise<Listed[]> {
  const all = [await page(scene, query, rights)];
  for (let last = all[0]; last?.next; last = all.at(-1)) {
    all.push(await page(scene, { ...query, after: last.next }, rights));
  }
  return all;
}

const inOrder = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));
const namespaceOf = (key: string): string => key.slice(0, Math.max(key.indexOf('/'), 0));

describe('a list', () => {
  const namespace = fc.constantFrom('a', 'a-', 'ab', 'b', 'team-1', 'team-2', '');
  const name = fc.constantFrom('x', 'xy', '~', 'é', '\uffee', '😀', '😀a', 'x/y', 'team-1', 'a');
  const key = fc.tuple(namespace, name).map(([space, own]) => (space === '' ? own : `${space}/${own}`));
  const pattern = fc.constantFrom('a', 'ab', 'a*', 'a-*', 'b', 'team-*', 'team-2', 't*', 'none', '*');
  const right = fc.tuple(fc.constantFrom('read', 'lock', 'admin'), pattern).map((parts) => parts.join(':'));
  const asked = fc.constantFrom<Readonly<Record<string, string>>>(
    {},
    { prefix: 'a' },
    { prefix: 'a/' },
    { prefix: 'team-' },
    { prefix: 'team-1/x' },
    { prefix: '😀' },
    { namespace: 'a' },
    { namespace: 'team-2' },
    { namespace: 'a', prefix: 'x' },
  );

  it('is exactly what somebody may read, in order, each once, whatever their rights and the size of a page', async () => {
    const inner = memoryStore();
    let current = observed(memoryStore());
    const scene = await stage({ store: { ...inner, list: (query) => current.list(query) }, auth: byRights });
    const keys = fc.uniqueArray(key, { maxLength: 25 });
    const rights = fc.array(right, { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(
        keys,
        rights,
        fc.integer({ min: 1, max: 6 }),
        asked,
        async (all, texts, limit, query) => {
          current = observed(memoryStore());
          await fill(
            current,
            all.map((one) => ({ key: one })),
          );
          const { namespace: space } = query;
          if (space !== undefined && !allows(rightsOf(texts), 'read', space)) {
            const refused = await scene.call('GET', `/v2/locks?namespace=${space}`, undefined, {
              'x-rights': texts.join(' '),
            });
            expect([refused.status, current.listed]).toEqual([403, []]);
            return;
          }
          const found = await pages(scene, { ...query, limit: String(limit) }, texts.join(' '));
          const begin = `${query.namespace === undefined ? '' : `${query.namespace}/`}${query.prefix ?? ''}`;
          const may = (one: string): boolean => allows(rightsOf(texts), 'read', namespaceOf(one));
          const wanted = all.filter((one) => one.startsWith(begin) && may(one)).sort(inOrder);
          expect(found.flatMap((one) => one.keys)).toEqual(wanted);
          expect(found).toHaveLength(Math.max(1, Math.ceil(wanted.length / limit)));
          // And a page costs a page: besides it, one more is looked at, and keys that are in no namespace.
          const strays = all.filter((one) => namespaceOf(one) === '').length;
          const given = current.listed.reduce((sum, one) => sum + one.given, 0);
          expect(given).toBeLessThanOrEqual(wanted.length + found.length * (1 + strays));
        },
      ),
      // A star covers namespaces, and not what only begins so.
      { numRuns: 150, examples: [[['team-1/x', 'team-x'], ['read:team-*'], 1, {}]] },
    );
  });

  it('looks at nothing else than what somebody may read and asks for', async () => {
    const store = observed(memoryStore());
    const scene = await stage({ store, auth: byRights });
    await fill(
      store,
      ['ann/a', 'eve/a', 'eve/b', 'team-1/a', 'zoe/a'].map((key) => ({ key })),
    );
    const looks = async (query: Readonly<Record<string, string>>): Promise<unknown> => {
      store.listed.length = 0;
      await pages(scene, query, 'read:team-* lock:eve read:eve');
      return store.listed.map(({ query: { prefix, after } }) => [prefix, after]);
    };
    expect(await looks({})).toEqual([
      ['eve/', undefined],
      ['team-', undefined],
    ]);
    expect(await looks({ namespace: 'eve', prefix: 'b' })).toEqual([['eve/b', undefined]]);
    expect(await looks({ prefix: 'e' })).toEqual([['eve/', undefined]]);
    expect(await looks({ prefix: 'zoe/a' })).toEqual([]);
    expect(await looks({ after: 'eve/a' })).toEqual([
      ['eve/', 'eve/a'],
      ['team-', undefined],
    ]);
    expect(await looks({ after: 'eve0' })).toEqual([['team-', undefined]]);
    expect(await looks({ after: 'zoe/a' })).toEqual([]);
  });

  it('refuses an `after` that can be no key; behind nothing is all', async () => {
    const { get } = await stage();
    expect((await get('/v2/locks?after=a%00b')).status).toBe(400);
    expect((await get('/v2/locks?after=')).status).toBe(200);
  });
});

for (const [store, newStore] of Object.entries(STORES)) {
  describe(`large answers on ${store}`, () => {
    const text = 'm'.repeat(3_900);

    it('a page ends at a megabyte, and the next goes on there, for the library too', async () => {
      const scene = await stage({ store: newStore() });
      const keys = Array.from({ length: 600 }, (_, index) => `a/${String(index).padStart(4, '0')}`);
      await fill(
        scene.store,
        keys.map((key) => ({ key, metadata: JSON.stringify({ text }) })),
      );
      const found = await pages(scene, { namespace: 'a', limit: '1000' });
      expect(found.flatMap((one) => one.keys)).toEqual(keys);
      for (const { bytes } of found) expect(bytes).toBeLessThan(1_010_000);
      expect(found).toHaveLength(3);
      const client = httpStore({ url: scene.url });
      atTheEnd(() => client.close());
      const listed = [];
      for await (const { key } of client.list({ prefix: 'a/', limit: 550 })) listed.push(key);
      expect(listed).toEqual(keys.slice(0, 550));
    });

    it('of many holders a thousand are shown, fewer with large metadata, and how many there are', async () => {
      const scene = await stage({ store: newStore() });
      const metadata = JSON.stringify({ text });
      await fill(scene.store, Array(1_100).fill({ key: 'a/large', metadata, capacity: 2_000 }));
      await fill(scene.store, Array(1_100).fill({ key: 'a/many', capacity: 2_000 }));
      const shown = async (name: string) => {
        const { body } = await scene.get(`/v2/locks/a/${name}`);
        return [(body.holders as unknown[]).length, body.holding, body.waiting];
      };
      expect(await shown('many')).toEqual([1_000, 1_100, 0]);
      expect(await shown('large')).toEqual([Math.floor((256 * 1_024) / metadata.length), 1_100, 0]);
      const events = await listen(scene.url, '/v2/events');
      await until(() => events.events.some(({ event }) => event === 'ready'), 'it is ready');
      expect(events.text().length).toBeLessThan(600_000);
      events.close();
      const busy = await scene.post('/v2/locks/a/many/acquire', { ttl: '30s' });
      expect([busy.status, (busy.body.holders as unknown[]).length]).toEqual([423, 16]);
    });
  });
}
