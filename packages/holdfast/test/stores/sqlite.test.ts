import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, statSync } from 'node:fs';
import { afterEach, expect, it, vi } from 'vitest';
import { createLocks } from '../../src/index.js';
import { KEEP_MS, NotExecutedError, UnsupportedError } from '../../src/protocol/index.js';
import { sqliteStore } from '../../src/stores/sqlite/index.js';
import {
  ask,
  claimOf,
  clearScene,
  connection,
  Driver,
  freshFile,
  releaseOf,
  renewOf,
  storeAt,
} from './sqlite-scene.js';

afterEach(clearScene);

const rowsIn = (file: string, table: string): number =>
  (connection(file).prepare(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }).n;

it('two connections exclude each other, and a release lets the next in with a higher token', async () => {
  const file = freshFile();
  const [one, two] = [sqliteStore(file), sqliteStore(file)];
  const first = await ask(one, claimOf('k', 'a'));
  expect(first.kind).toBe('granted');
  expect((await ask(two, claimOf('k', 'b'))).kind).toBe('busy');
  await ask(one, releaseOf(claimOf('k', 'a')));
  const second = await ask(two, claimOf('k', 'b'));
  if (first.kind !== 'granted' || second.kind !== 'granted') throw new Error('Both were to be granted.');
  expect(second.token).toBeGreaterThan(first.tokenLast);
  await Promise.all([one.close(), two.close()]);
});

it('locks outlive the store: who opens the file later still finds them', async () => {
  const file = freshFile();
  const store = sqliteStore(file, { liveness: false });
  await ask(store, claimOf('k', 'a'));
  await store.close();
  const later = sqliteStore(file);
  expect((await ask(later, claimOf('k', 'b'))).kind).toBe('busy');
  await later.close();
});

it('a batch is one transaction, and commands of one key apply in order', async () => {
  const store = storeAt(freshFile());
  const claim = claimOf('k', 'a');
  const replies = await Promise.all(
    store.apply([claim, claimOf('k', 'b'), releaseOf(claim), claimOf('k', 'b')]),
  );
  expect(replies.map(({ kind }) => kind)).toEqual(['granted', 'busy', 'released', 'granted']);
});

it('F30: a record of a newer version fails alone and stays as it was; the rest of the batch is committed', async () => {
  const file = freshFile();
  const store = storeAt(file);
  await ask(store, claimOf('newer', 'a'));
  const other = connection(file);
  other.exec("UPDATE holdfast_records SET state = json_set(state, '$.version', 99) WHERE key = 'newer'");
  const before = other.prepare("SELECT * FROM holdfast_records WHERE key = 'newer'").get();
  const outcomes = await Promise.allSettled(
    store.apply([claimOf('x', 'b'), claimOf('newer', 'b'), claimOf('y', 'b')]),
  );
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(outcomes[1]).toMatchObject({ reason: { code: 'unsupported', key: 'newer' } });
  expect(other.prepare("SELECT * FROM holdfast_records WHERE key = 'newer'").get()).toEqual(before);
  expect((await ask(storeAt(file), claimOf('y', 'c'))).kind).toBe('busy');
});

it('a waiter that asks in vain writes nothing', async () => {
  const file = freshFile();
  const store = storeAt(file);
  await Promise.all(store.apply([claimOf('k', 'a'), claimOf('k', 'b')]));
  const before = statSync(`${file}-wal`);
  for (let count = 0; count < 20; count++) expect((await ask(store, claimOf('k', 'b'))).kind).toBe('busy');
  const after = statSync(`${file}-wal`);
  expect([after.size, after.mtimeMs]).toEqual([before.size, before.mtimeMs]);
});

it('a busy database rejects with a plain error after a short while, and serves again as soon as it is free', async () => {
  const file = freshFile();
  const store = storeAt(file);
  const writer = connection(file);
  writer.exec('BEGIN IMMEDIATE');
  const began = performance.now();
  await expect(ask(store, claimOf('k', 'a'))).rejects.toThrow(/busy/);
  const first = performance.now() - began;
  const laterMs: number[] = [];
  for (let attempt = 0; attempt < 4; attempt++) {
    const sinceMs = performance.now();
    await expect(ask(store, claimOf('k', 'a'))).rejects.not.toBeInstanceOf(UnsupportedError);
    laterMs.push(performance.now() - sinceMs);
  }
  // They are not waited for as long: the event loop has other work.
  expect(Math.min(...laterMs)).toBeLessThan(first);
  writer.exec('ROLLBACK');
  expect((await ask(store, claimOf('k', 'a'))).kind).toBe('granted');
});

it('a short transaction of another process is waited for', async () => {
  const file = freshFile();
  const store = storeAt(file);
  // Holds the database for 20 ms at a time, nearly all the time.
  const script = `const { DatabaseSync } = require('@photostructure/sqlite');
    const database = new DatabaseSync(process.argv[1]);
    database.exec('PRAGMA busy_timeout = 1000');
    const pause = new Int32Array(new SharedArrayBuffer(4));
    for (let round = 0; round < 100; round++) {
      database.exec('BEGIN IMMEDIATE');
      if (round === 0) console.log('ready');
      Atomics.wait(pause, 0, 0, 20);
      database.exec('COMMIT');
      Atomics.wait(pause, 0, 0, 5);
    }`;
  const writer = spawn(process.execPath, ['-e', script, file], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(writer, 'exit');
  await once(writer.stdout, 'data');
  let granted = 0;
  for (let number = 1; number <= 20; number++) {
    const [outcome] = await Promise.allSettled(store.apply([claimOf(`k${number}`, 'a', number)]));
    if (outcome?.status === 'fulfilled') granted += 1;
  }
  writer.kill('SIGKILL');
  await ended;
  expect(granted).toBeGreaterThan(5);
});

it('P12: records of released keys go once they may, a few with every write', async () => {
  const file = freshFile();
  let now = 1_000_000;
  const store = storeAt(file, { now: () => now });
  for (let count = 0; count < 50; count++) {
    const claim = claimOf(`once-${count}`, 'a', count + 1);
    await Promise.all(store.apply([claim, releaseOf(claim)]));
  }
  expect(rowsIn(file, 'holdfast_records')).toBe(50);
  now += KEEP_MS + 2_000;
  for (let count = 0; count < 25; count++) {
    await ask(store, renewOrClaim(count));
  }
  expect(rowsIn(file, 'holdfast_records')).toBe(1);
});

/** Every one of these writes: the ttl grows. */
function renewOrClaim(count: number) {
  const claim = claimOf('kept', 'b', 1, { ttlMs: 60_000 + count });
  return count === 0 ? claim : renewOf(claim);
}

it('F10: the token still rises after the record was cleaned up', async () => {
  const file = freshFile();
  let now = 1_000_000;
  const store = storeAt(file, { now: () => now });
  const before = await ask(store, claimOf('k', 'a'));
  await ask(store, releaseOf(claimOf('k', 'a')));
  now += KEEP_MS + 2_000;
  await Promise.all(store.apply([claimOf('x', 'a', 2), claimOf('y', 'a', 3)]));
  expect(
    await connection(file).prepare("SELECT 1 FROM holdfast_records WHERE key = 'k'").get(),
  ).toBeUndefined();
  const after = await ask(store, claimOf('k', 'a', 4));
  if (before.kind !== 'granted' || after.kind !== 'granted') throw new Error('Both were to be granted.');
  expect(after.token).toBeGreaterThan(before.tokenLast);
});

it('a released key leaves a hundred bytes or so, not a document', async () => {
  const file = freshFile();
  const store = storeAt(file);
  const claim = claimOf('k', 'a'.repeat(22), 1, { metadata: JSON.stringify({ note: 'x'.repeat(500) }) });
  await Promise.all(store.apply([claim, releaseOf(claim)]));
  const { bytes } = connection(file).prepare('SELECT length(state) AS bytes FROM holdfast_records').get() as {
    bytes: number;
  };
  expect(bytes).toBeLessThan(180);
});

it('lists keys in use, in order, by prefix, up to a limit, over many pages', async () => {
  const store = storeAt(freshFile());
  const names = Array.from({ length: 600 }, (_, at) => `a/${String(at).padStart(3, '0')}`);
  const claims = [...names, 'a', 'b/1', 'a/é', '%', '_'].map((name, at) => claimOf(name, 'p', at + 1));
  await Promise.all(store.apply(claims));
  const free = claimOf('a/free', 'p', 9_999);
  await Promise.all(store.apply([free, releaseOf(free)]));
  const keysOf = async (prefix: string, limit?: number): Promise<string[]> => {
    const found: string[] = [];
    for await (const { key } of store.list({ prefix, ...(limit === undefined ? {} : { limit }) }))
      found.push(key);
    return found;
  };
  expect(await keysOf('a/')).toEqual([...names, 'a/é']);
  expect(await keysOf('a/', 300)).toEqual(names.slice(0, 300));
  expect(await keysOf('%')).toEqual(['%']);
  expect(await keysOf('', 0)).toEqual([]);
  expect(await keysOf('')).toHaveLength(605);
  expect(await keysOf('nothing')).toEqual([]);
});

it('F17: names that differ in the smallest way are different keys', async () => {
  const store = storeAt(freshFile());
  const names = [
    'k',
    'K',
    'k ',
    ' k',
    "k'",
    'k"',
    'k%',
    'k_',
    'k\\',
    'k;DROP TABLE holdfast_records',
    'ḱ',
    'ḱ',
  ];
  const replies = await Promise.all(store.apply(names.map((name, at) => claimOf(name, 'p', at + 1))));
  expect(replies.map(({ kind }) => kind)).toEqual(names.map(() => 'granted'));
});

it('closing twice is fine, and afterwards everything is refused', async () => {
  const store = sqliteStore(freshFile());
  await store.close();
  await store.close();
  await expect(ask(store, claimOf('k', 'a'))).rejects.toThrow(/closed/);
  await expect(store.read('k')).rejects.toThrow(/closed/);
  await expect(store.probe()).rejects.toThrow(/closed/);
  await expect(store.listen?.('inbox', () => undefined)).rejects.toThrow(/closed/);
});

it('a connection that was given stays open when the store is closed', async () => {
  const database = new Driver(':memory:');
  const store = sqliteStore(database);
  expect(store.traits).toMatchObject({ shared: 'process', durable: false, livenessPollMs: null });
  expect((await ask(store, claimOf('k', 'a'))).kind).toBe('granted');
  await store.close();
  expect(database.prepare('SELECT count(*) AS n FROM holdfast_records').get()).toEqual({ n: 1 });
  database.close();
});

it('P23: a file removed or replaced in use is refused: two files would mean two holders', async () => {
  const file = freshFile();
  const store = storeAt(file);
  await ask(store, claimOf('k', 'a'));
  rmSync(file);
  await expect(ask(store, claimOf('k', 'b'))).rejects.toThrow(/removed or replaced/);
  const fresh = storeAt(file);
  expect((await ask(fresh, claimOf('k', 'b'))).kind).toBe('granted');
  await expect(ask(store, renewOf(claimOf('k', 'a')))).rejects.toThrow(/removed or replaced/);
});

it.each(['-wal', '-shm'])(
  'P23: so is one whose %s was removed: a later process would make a new one',
  async (end) => {
    const file = freshFile();
    const locks = createLocks(storeAt(file));
    const lease = await locks.acquire('k', { ttl: 1_000 });
    rmSync(file + end);
    await vi.waitFor(() => expect(lease.state).toBe('lost'), { timeout: 10_000 });
    await expect(locks.tryAcquire('other')).rejects.toThrow(
      /-(wal|shm) was removed or replaced.*Open .*locks.db again/,
    );
  },
);

it('a DatabaseSync that was closed before its store is told as that, at once, and the store closes', async () => {
  const database = connection(freshFile());
  const store = sqliteStore(database);
  const locks = createLocks(store);
  await locks.withLock('k', () => 1);
  database.close();
  const outcomes = await Promise.allSettled([
    locks.acquire('k', { wait: '1m' }),
    locks.inspect('k'),
    locks.list()[Symbol.asyncIterator]().next(),
    locks.evict('k'),
  ]);
  for (const outcome of outcomes) {
    const reason: unknown = outcome.status === 'rejected' ? outcome.reason : null;
    expect(reason).toBeInstanceOf(UnsupportedError);
    expect(String(reason)).toMatch(/the DatabaseSync of this store was closed/);
  }
  await locks.close();
});

it('a full disk is told as that: nothing was executed, what is held stays held, and room is enough to go on', async () => {
  const database = connection(freshFile());
  const store = sqliteStore(database);
  const held = claimOf('held', 'a');
  await ask(store, held);
  const { page_count: pages } = database.prepare('PRAGMA page_count').get() as { page_count: number };
  database.exec(`PRAGMA max_page_count = ${pages}`);
  const large = claimOf('large', 'a', 2, { metadata: JSON.stringify({ text: 'x'.repeat(20_000) }) });
  const refusal = await ask(store, large).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(NotExecutedError);
  expect(refusal).toMatchObject({
    message: expect.stringContaining('the disk is full'),
    retry: 'while-waiting',
  });
  expect((await ask(store, renewOf(held))).kind).toBe('renewed');
  database.exec('PRAGMA max_page_count = 100000');
  expect((await ask(store, large)).kind).toBe('granted');
  await store.close();
});
