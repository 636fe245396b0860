import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { openStore } from '../src/open-store.js';
import { InvalidArgumentError } from '../src/protocol/index.js';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-open-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('opens memory, and SQLite files by path, absolute or as a URL', async () => {
  const memory = await openStore('memory:');
  expect(memory.name).toBe('memory');
  for (const url of [
    `sqlite:${folder}/a.db`,
    `sqlite://${folder}/b.db`,
    `SQLite:${folder}/with%20space%3F.db`,
  ]) {
    const store = await openStore(url);
    expect(store.name).toBe('sqlite');
    await store.close();
  }
  for (const name of ['a.db', 'b.db', 'with space?.db'])
    expect(existsSync(join(folder, name)), name).toBe(true);
});

it('makes missing folders', async () => {
  const store = await openStore(`sqlite:${folder}/deep/er/locks.db`);
  await store.close();
  expect(existsSync(join(folder, 'deep/er/locks.db'))).toBe(true);
});

it.each([
  ['', /not the URL of a store.*memory: or sqlite:PATH/],
  ['locks.db', /not the URL of a store/],
  ['/var/lib/locks.db', /not the URL of a store/],
  ['mysql://x', /no store for "mysql:".*memory: or sqlite:PATH/],
  ['memory:x', /takes nothing behind it/],
  ['sqlite:', /path is missing/],
  ['sqlite://', /path is missing/],
  ['sqlite:?x=1', /no option "x"/],
  ['sqlite:a.db?mode=ro', /no option "mode"/],
  ['sqlite://host/a.db', /names a host/],
  ['sqlite:~/a.db', /only a shell knows what ~ is/],
  ['sqlite:100%.db', /write it %25/],
])('refuses %j with words that help', async (url, words) => {
  const refusal = openStore(url);
  await expect(refusal).rejects.toThrow(words);
  await expect(refusal).rejects.toThrow(InvalidArgumentError);
});
