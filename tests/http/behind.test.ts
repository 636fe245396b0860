/** Stores of other kinds behind a service: what they cannot do, and what they say, is the same through it. */
import { createLocks } from 'holdfast';
import { httpStore } from 'holdfast/http';
import { memoryStore } from 'holdfast/memory';
import type { Command, Reply, Store } from 'holdfast/protocol';
import { createService, type ServiceOptions } from 'holdfast-service';
import { afterEach, expect, it } from 'vitest';
import { atTheEnd, claimOf, clearScene, pause, say } from './scene.js';

afterEach(clearScene);

async function urlOn(store: Store, options: Partial<ServiceOptions> = {}): Promise<string> {
  const service = createService({ store, ...options });
  atTheEnd(() => store.close());
  atTheEnd(() => service.close());
  return await service.listen();
}

function through(url: string): Store {
  const store = httpStore({ url });
  atTheEnd(() => store.close());
  return store;
}

/** As DynamoDB's is: no line, no wake-ups. */
function plain(): Store {
  const { listen: _, ...store } = memoryStore();
  const unqueued = (command: Command): Command =>
    command.kind === 'claim' ? { ...command, queue: false } : command;
  return {
    ...store,
    traits: { ...store.traits, queue: false, push: false },
    apply: (commands) => store.apply(commands.map(unqueued)),
  };
}

it('a store without a line and without wake-ups: waiters go by their polls, and all are served', async () => {
  const url = await urlOn(plain());
  let inside = 0;
  let most = 0;
  const work = async (): Promise<void> => {
    inside += 1;
    most = Math.max(most, inside);
    await pause(20);
    inside -= 1;
  };
  const clients = [1, 2, 3].map(() => createLocks(through(url)));
  await Promise.all(clients.map((locks) => locks.withLock('k', work, { wait: '20s' })));
  expect(most).toBe(1);
  const { findings } = await through(url).probe();
  expect(findings.length).toBeGreaterThan(0);
  await Promise.all(clients.map((locks) => locks.close({ drain: 0 })));
});

it('services that do not share a store are not to be listed together: probe says so', async () => {
  const urls = [await urlOn(memoryStore()), await urlOn(memoryStore())];
  const store = httpStore({ urls });
  atTheEnd(() => store.close());
  const { findings } = await store.probe();
  expect(findings).toContainEqual({ level: 'warning', text: expect.stringMatching(/locks of its own/) });
});

it('a store whose time is in doubt: how far comes along with every reply', async () => {
  const store = memoryStore();
  const doubtful = async (reply: Promise<Reply>): Promise<Reply> => ({ ...(await reply), doubtMs: 7 });
  const url = await urlOn({ ...store, apply: (commands) => store.apply(commands).map(doubtful) });
  expect(await say(through(url), claimOf('k'))).toMatchObject({ kind: 'granted', doubtMs: 7 });
});

it('metadata and odd names come through letter by letter', async () => {
  const url = await urlOn(memoryStore());
  const store = through(url);
  const metadata = '{ "a" :1e2,"b":"\\u00fc \u{1F512}" }';
  for (const key of ['a b?c#d%2F', 'ns/../x', 'ns//', '/', '\u{1F512}', 'a+b&c=d']) {
    expect((await say(store, claimOf(key, { metadata }))).kind).toBe('granted');
    expect(await store.read(key)).toMatchObject({ key, holders: [{ metadata }] });
    const listed = [];
    for await (const { key: found } of store.list({ prefix: key })) listed.push(found);
    expect(listed).toContain(key);
  }
});

it('a list of more than one page is whole, in order, and stops where asked', async () => {
  const store = through(await urlOn(memoryStore()));
  const keys = Array.from({ length: 2_345 }, (_, index) => `page/${String(index).padStart(5, '0')}`);
  await Promise.all(store.apply(keys.map((key) => claimOf(key))));
  const listed = async (limit?: number): Promise<string[]> => {
    const found: string[] = [];
    const query = { prefix: 'page/', ...(limit !== undefined && { limit }) };
    for await (const { key } of store.list(query)) found.push(key);
    return found;
  };
  expect(await listed()).toEqual(keys);
  expect(await listed(1_500)).toEqual(keys.slice(0, 1_500));
});

it('a ttl above the limit of the service is refused alone, with the reason', async () => {
  const store = through(await urlOn(memoryStore(), { limits: { ttlMsMax: 60_000 } }));
  const [fine, long] = store.apply([claimOf('a'), claimOf('b', { ttlMs: 60_001 })]);
  await expect(long).rejects.toMatchObject({ code: 'unsupported', message: expect.stringMatching(/60000/) });
  expect((await fine)?.kind).toBe('granted');
});
