/** Data folders: initdb takes most of a second, so it runs once per test run and its result is copied. */
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { madeOnce } from '../folders.js';
import { giveTo, type User } from '../unprivileged.js';
import type { PostgresBinaries } from './binaries.js';

const run = promisify(execFile);
const INITDB = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];

async function initdb({ folder }: PostgresBinaries, user: User | undefined, data: string): Promise<void> {
  mkdirSync(data, { mode: 0o700 });
  giveTo(user, data);
  await run(join(folder, 'initdb'), ['-D', data, ...INITDB], { cwd: data, ...(user ?? {}) });
}

/** Makes the folder `to`, which must not exist. */
export async function makeDataFolder(
  binaries: PostgresBinaries,
  user: User | undefined,
  to: string,
): Promise<void> {
  const from = await madeOnce(`data-${binaries.version}`, (aside) => initdb(binaries, user, aside));
  await run('cp', ['-R', '-p', from, to]);
  chmodSync(to, 0o700);
}
