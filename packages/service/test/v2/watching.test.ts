/** Who watches what, and what that costs the store. */
import { get as httpGet, type IncomingMessage } from 'node:http';
import { memoryStore } from 'holdfast/memory';
import { afterEach, describe, expect, it } from 'vitest';
import { isLongRun } from '../../../../tests/long-run.js';
import { clearScene, type EventStream, listen, pause, stage, until } from '../scene.js';
import { byRights, fill, observed, withNewer } from './full-store.js';

afterEach(clearScene);

const has = ({ events }: EventStream, event: string, key?: string): boolean =>
  events.some((one) => one.event === event && (key === undefined || one.data.key === key));
const keysOf = ({ events }: EventStream): unknown[] =>
  events.filter(({ event }) => event === 'appeared').map(({ data }) => data.key);

async function scene(inner = memoryStore()) {
  const store = observed(inner);
  const { url, call } = await stage({ store, auth: byRights });
  const watched = async (rights: string, query = ''): Promise<EventStream> => {
    const stream = await listen(url, `/v2/events${query}`, { 'x-rights': rights });
    await until(() => has(stream, 'ready'), 'it is ready');
    return stream;
  };
  const acquire = (path: string) =>
    call('POST', `/v2/locks/${path}/acquire`, { ttl: '30s' }, { 'x-rights': 'lock:*' });
  const prefixes = (): string[] => [...new Set(store.listed.map(({ query }) => query.prefix))].sort();
  return { store, url, watched, acquire, prefixes };
}

describe('whoever watches', () => {
  it('costs a look at what they may read, and nothing of anybody else', async () => {
    const { store, watched, acquire, prefixes } = await scene();
    await fill(
      store,
      ['ann/a', 'eve/a', 'zoe/a'].map((key) => ({ key })),
    );
    const eve = await watched('read:eve');
    const ann = await watched('read:ann');
    expect([keysOf(eve), keysOf(ann)]).toEqual([['eve/a'], ['ann/a']]);
    expect(prefixes()).toEqual(['ann/', 'eve/']);
    store.reads.length = 0;
    await acquire('eve/b');
    await until(() => has(eve, 'appeared', 'eve/b'), 'it appears');
    await pause(200);
    // Read for the watch that it concerns, once.
    expect(store.reads).toEqual(['eve/b']);
    expect(ann.text()).not.toContain('eve/');
    ann.close();
    await pause(300);
    store.listed.length = 0;
    await pause(1_500);
    expect(prefixes()).toEqual(['eve/']);
  });

  it('shares the look with all who watch the same, by whatever rights', async () => {
    const { store, watched } = await scene();
    const streams = [
      await watched('read:eve'),
      await watched('admin:*', '?namespace=eve'),
      await watched('lock:e*', '?namespace=eve'),
    ];
    store.listed.length = 0;
    await pause(2_500);
    expect(store.listed.map(({ query }) => query.prefix)).toEqual(store.listed.map(() => 'eve/'));
    expect(store.listed.length).toBeGreaterThan(0);
    expect(store.listed.length).toBeLessThan(5);
    await fill(store, [{ key: 'eve/far' }]);
    for (const stream of streams) await until(() => has(stream, 'appeared', 'eve/far'), 'all are told');
  });

  it('with several rights is told of all, and is ready once all of it was looked at', async () => {
    const { store, watched, prefixes } = await scene();
    await fill(
      store,
      ['ann/a', 'eve/a', 'team-1/a', 'team-x', 'zoe/a'].map((key) => ({ key })),
    );
    const stream = await watched('read:eve read:team-* read:team-1 read:ann');
    expect(keysOf(stream).sort()).toEqual(['ann/a', 'eve/a', 'team-1/a']);
    expect(stream.events.map(({ event }) => event)).toEqual(['appeared', 'appeared', 'appeared', 'ready']);
    expect(prefixes()).toEqual(['ann/', 'eve/', 'team-']);
  });

  it('is told of the keys around a record of a newer format', async () => {
    const { store, watched } = await scene(withNewer(memoryStore(), 'eve/b'));
    await fill(
      store,
      ['eve/a', 'eve/b', 'eve/c'].map((key) => ({ key })),
    );
    const eve = await watched('read:eve');
    expect(keysOf(eve)).toEqual(['eve/a', 'eve/c']);
    await fill(store, [{ key: 'eve/d' }]);
    await until(() => has(eve, 'appeared', 'eve/d'), 'it goes on');
    expect(has(eve, 'trouble')).toBe(false);
  });

  it('without any right is ready at once without a look', async () => {
    const { store, watched, acquire } = await scene();
    const streams = [await watched('')];
    await acquire('ann/b');
    await pause(300);
    for (const { events } of streams) expect(events.map(({ event }) => event)).toEqual(['ready']);
    expect([store.listed, store.reads]).toEqual([[], []]);
  });

  it('many namespaces at once waits for turns: one read at a time, with pauses', async () => {
    const inner = memoryStore();
    let now = 0;
    let most = 0;
    let spentMs = 0;
    const slow = {
      ...inner,
      async *list(query: Parameters<typeof inner.list>[0]) {
        most = Math.max(most, ++now);
        const sinceMs = performance.now();
        await pause(20);
        yield* inner.list(query);
        spentMs += performance.now() - sinceMs;
        now -= 1;
      },
    };
    const { url } = await stage({ store: slow });
    const sinceMs = performance.now();
    const spaces = Array.from({ length: 20 }, (_, index) => `?namespace=n${index}`);
    const streams = await Promise.all(spaces.map((query) => listen(url, `/v2/events${query}`)));
    await until(() => streams.every((stream) => has(stream, 'ready')), 'all are ready');
    expect(most).toBe(1);
    expect(spentMs / (performance.now() - sinceMs)).toBeLessThan(0.3);
  });
});

const COUNT = isLongRun ? 20_000 : 6_000;

describe(`${COUNT} locks`, { timeout: 240_000 }, () => {
  const keys = Array.from({ length: COUNT }, (_, index) => `a/${String(index).padStart(6, '0')}`);
  const last = keys.at(-1) ?? '';

  it('are watched, page by page, and the last as promptly as the first', async () => {
    const { store, watched, acquire } = await scene();
    for (let from = 0; from < keys.length; from += 1_000) {
      await fill(
        store,
        keys.slice(from, from + 1_000).map((key) => ({ key })),
      );
    }
    const stream = await watched('read:a');
    expect(keysOf(stream)).toEqual(keys);
    expect(stream.events.at(-1)?.event).toBe('ready');
    await acquire('a/zzz');
    await until(() => has(stream, 'appeared', 'a/zzz'), 'it appears');
    // And what another process did.
    await Promise.all(store.apply([{ kind: 'evict', key: last, upToToken: Number.MAX_SAFE_INTEGER }]));
    await until(() => has(stream, 'gone', last), 'it is gone');
    expect(stream.events.filter(({ event }) => event === 'gone')).toHaveLength(1);
  });

  it.runIf(isLongRun)('reach one who reads slowly too, and each as it is by then', async () => {
    const { store, url, acquire } = await scene();
    // More than the sockets of both sides take in: the last is not sent before somebody reads.
    const metadata = JSON.stringify({ text: 'm'.repeat(2_000) });
    await fill(
      store,
      keys.map((key) => ({ key, metadata })),
    );
    const { response, text } = await unread(`${url}/v2/events`, { 'x-rights': 'read:a' });
    await pause(2_000);
    await Promise.all(store.apply([{ kind: 'evict', key: last, upToToken: Number.MAX_SAFE_INTEGER }]));
    await acquire('a/zzz');
    await pause(3_000);
    response.resume();
    await until(() => text().includes('event: ready'), 'it is ready');
    const told = [...text().matchAll(/^event: appeared\ndata: \{"key":"([^"]+)"/gm)].map(([, key]) => key);
    expect(told.filter((key) => key !== 'a/zzz')).toEqual(keys.slice(0, -1));
    expect(text()).not.toContain(last);
    response.destroy();
  });
});

/** Asks, and reads nothing until `resume`. */
async function unread(url: string, headers: Record<string, string>) {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    httpGet(url, { headers, agent: false }, resolve).on('error', reject);
  });
  let all = '';
  response.on('data', (chunk) => {
    all += String(chunk);
  });
  response.pause();
  response.on('error', () => undefined);
  return { response, text: () => all };
}
