/** Locks through a service that asks who they are. */
import { join } from 'node:path';
import { createLocks, openStore, UnsupportedError } from 'holdfast';
import { httpStore } from 'holdfast/http';
import { memoryStore } from 'holdfast/memory';
import { createApiKey, createAuth, createService, revokeApiKeys } from 'holdfast-service';
import { afterEach, expect, it } from 'vitest';
import { atTheEnd, claimOf, clearScene, freshFile, pause, say, until } from './scene.js';

afterEach(clearScene);

async function guarded() {
  const change = { path: join(freshFile(), '..', 'keys.json'), by: 'test' };
  const ours = await createApiKey(change, { name: 'ours', rights: ['lock:ours'] });
  const theirs = await createApiKey(change, { name: 'theirs', rights: ['lock:theirs'] });
  const store = memoryStore();
  const service = createService({ store, auth: createAuth({ apiKeys: change.path }) });
  atTheEnd(() => store.close());
  atTheEnd(() => service.close());
  const url = await service.listen();
  const storeOf = (key?: string) => {
    const opened = httpStore(key === undefined ? { url } : { url, apiKey: key });
    atTheEnd(() => opened.close());
    return opened;
  };
  return { change, ours: ours.text, theirs: theirs.text, url, storeOf };
}

it('with a key one locks, waits and is woken; the URL may have it, and no message shows it', async () => {
  const { ours, url, storeOf } = await guarded();
  const [a, b] = [
    createLocks(storeOf(ours), { namespace: 'ours' }),
    createLocks(await openStore(url.replace('//', `//${ours}@`)), { namespace: 'ours' }),
  ];
  const lease = await a.acquire('k');
  const waiting = b.acquire('k', { wait: '20s' });
  await until(async () => (await a.inspect('k'))?.waiters.length === 1, 'it waits');
  await lease.release();
  await (await waiting).release();
  const refused = await createLocks(storeOf(ours), { namespace: 'theirs' })
    .acquire('k')
    .catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(UnsupportedError);
  expect(String(refused)).not.toContain(ours);
  await Promise.all([a.close(), b.close()]);
});

it('without a key, with a wrong one, or in a foreign namespace, locks and views are refused', async () => {
  const { ours, theirs, storeOf } = await guarded();
  await expect(say(storeOf(), claimOf('ours/k'))).rejects.toThrow(/rejected the credentials/);
  await expect(say(storeOf(`${ours}x`), claimOf('ours/k'))).rejects.toThrow(/rejected the credentials/);
  const [own, foreign] = storeOf(ours).apply([claimOf('ours/k'), claimOf('theirs/k')]);
  expect((await own)?.kind).toBe('granted');
  await expect(foreign).rejects.toBeInstanceOf(UnsupportedError);
  await expect(storeOf(theirs).read('ours/k')).rejects.toBeInstanceOf(UnsupportedError);
  expect(await storeOf(ours).read('ours/k')).toMatchObject({ key: 'ours/k' });
  const keysOf = async (apiKey: string, prefix: string) => {
    const found: string[] = [];
    for await (const { key } of storeOf(apiKey).list({ prefix })) found.push(key);
    return found;
  };
  expect(await keysOf(ours, 'ours/')).toEqual(['ours/k']);
  await expect(keysOf(theirs, 'ours/')).rejects.toBeInstanceOf(UnsupportedError);
  expect(await keysOf(theirs, '')).toEqual([]);
});

it('a key that is revoked gets no lock any more; what it held is not lost by that, but by its ttl', async () => {
  const { change, ours, storeOf } = await guarded();
  const locks = createLocks(storeOf(ours), { namespace: 'ours' });
  const lease = await locks.acquire('k', { ttl: '6s' });
  await revokeApiKeys(change, 'ours');
  let tries = 0;
  await until(
    async () =>
      (await locks.tryAcquire(`other ${++tries}`).catch((error: unknown) => error)) instanceof
      UnsupportedError,
    'the service knows of it',
  );
  expect(lease.held).toBe(true);
  await pause(7_000);
  expect(lease.held).toBe(false);
  await locks.close({ drain: 0 }).catch((error: unknown) => expect(error).toMatchObject({ code: 'store' }));
}, 60_000);
