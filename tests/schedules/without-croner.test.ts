import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { clearScene, freshFolder } from '../scene.js';

afterEach(clearScene);

it('a cron expression without the package croner is told what to install; a period needs nothing', async () => {
  const folder = freshFolder();
  const dist = fileURLToPath(new URL('../../packages/holdfast/dist', import.meta.url));
  cpSync(dist, join(folder, 'dist'), { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  const load = (file: string) => import(pathToFileURL(join(folder, 'dist', file)).href);
  const { createLocks } = await load('index.js');
  const { memoryStore } = await load('stores/memory.js');
  const { schedule } = await load('schedule/index.js');
  const locks = createLocks(memoryStore());
  expect(() => schedule(locks, 'job', '0 3 * * *', () => undefined)).toThrow(
    /needs the package croner: `npm install croner`/,
  );
  expect(schedule(locks, 'job', { every: '5m' }, () => undefined).next).toBeInstanceOf(Date);
  await locks.close();
});
