/** A data folder for a server: initdb takes most of a second, so it runs once and its result is copied. */
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sharedFolder } from '../folders.js';
import { giveTo, type User } from '../unprivileged.js';
import { madeOnce, type PostgresBinaries } from './binaries.js';

const run = promisify(execFile);
const INITDB = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
const making = new Map<string, Promise<string>>();

async function initdb({ folder }: PostgresBinaries, user: User | undefined, data: string): Promise<void> {
  mkdirSync(data, { mode: 0o700 });
  giveTo(user, data);
  await run(join(folder, 'initdb'), ['-D', data, ...INITDB], { cwd: data, ...(user ?? {}) });
}

function template(binaries: PostgresBinaries, user: User | undefined): Promise<string> {
  const path = join(sharedFolder(), `data-${binaries.version}`);
  const made = making.get(path) ?? madeOnce(path, (aside) => initdb(binaries, user, aside));
  making.set(path, made);
  return made;
}

/** Makes `to`, which must not be there yet. */
export async function makeDataFolder(binaries: PostgresBinaries, user: User | undefined, to: string): Promise<void> {
  const from = await template(binaries, user);
  await run('cp', ['-R', '-p', from, to]);
  chmodSync(to, 0o700);
}
