/** examples/patterns/next-route.js: its handler is called with requests as Next makes them. Next itself is not here. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { createLocks, openStore } from 'holdfast';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { run } from '../repository/shell.js';
import { root } from '../repository/tree.js';
import { atTheEnd, clearScene, freshFolder } from '../scene.js';

const ROUTE = join(root, 'examples/patterns/next-route.js');
const PROCESS = fileURLToPath(new URL('./next-process.js', import.meta.url));

let folder: string;

beforeEach(() => {
  folder = freshFolder();
  writeFileSync(join(folder, 'entries.json'), '[]');
});
afterEach(clearScene);

const entries = (): readonly string[] => JSON.parse(readFileSync(join(folder, 'entries.json'), 'utf8'));

async function serve(route: string, name: string, count: number, store?: string): Promise<readonly number[]> {
  const env = store === undefined ? {} : { HOLDFAST_STORE: store };
  const args = [PROCESS, route, name, String(count)];
  return JSON.parse(await run(process.execPath, args, { cwd: folder, env, timeoutMs: 100_000 }));
}

it('loses no entry of two processes', async () => {
  const statuses = await Promise.all(['one', 'two'].map((name) => serve(ROUTE, name, 25)));
  const served = statuses.flat().filter((status) => status === 201);
  // On a slow machine some wait in vain, and are told.
  expect(statuses.flat().filter((status) => status !== 201 && status !== 503)).toEqual([]);
  expect(served.length).toBeGreaterThan(1);
  expect(new Set(entries()).size).toBe(served.length);
});

it('answers 503 while others hold the lock', async () => {
  const store = `sqlite:${join(folder, 'locks.db')}`;
  const locks = createLocks(await openStore(store));
  atTheEnd(() => locks.close({ drain: 0 }));
  await locks.withLock('entries', async () => {
    expect(await serve(ROUTE, 'one', 1, store)).toEqual([503]);
  });
  expect(entries()).toEqual([]);
});

it('keeps its locks when its module is loaded again, as Next does in development', async () => {
  mkdirSync(join(root, '.tmp'), { recursive: true });
  const built = mkdtempSync(join(root, '.tmp', 'next-'));
  atTheEnd(() => rmSync(built, { recursive: true, force: true }));
  const route = join(built, 'route.mjs');
  // With Holdfast inside, as Next builds it; the clients of the stores stay outside.
  await build({
    entryPoints: [ROUTE],
    outfile: route,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    alias: { 'holdfast/env': join(root, 'packages/holdfast/dist/env.js') },
  });
  const reload = `
    const first = await import(${JSON.stringify(route)});
    const { holdfast } = globalThis;
    const second = await import(${JSON.stringify(`${route}?again`)});
    const post = ({ POST }, entry) =>
      POST(new Request('http://localhost/api/entries', { method: 'POST', body: JSON.stringify(entry) }));
    const both = Array.from({ length: 20 }, (_, index) => post(index % 2 ? first : second, index));
    const answers = await Promise.all(both);
    const served = answers.filter(({ status }) => status === 201).length;
    console.log(first.POST === second.POST, globalThis.holdfast === holdfast, served);
  `;
  // In memory, two stores would not know of each other.
  const env = { HOLDFAST_STORE: 'memory:' };
  const args = ['--input-type=module', '-e', reload];
  const [isSameModule, isSameLocks, served] = (await run(process.execPath, args, { cwd: folder, env })).split(
    ' ',
  );
  expect([isSameModule, isSameLocks]).toEqual(['false', 'true']);
  expect(Number(served)).toBeGreaterThan(1);
  expect(new Set(entries()).size).toBe(Number(served));
});
