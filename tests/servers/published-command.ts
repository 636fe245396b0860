/**
 * The command as it is published, in few files, made once for a run of the tests: it starts with two thirds of its modules' processor time.
 * Clients of stores and the service come from the repository.
 */
import { cpSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleCommand } from '../../packages/command-bundle.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CLI = join(ROOT, 'packages/cli');

/** Returns the path of the command. */
export async function publishedCommand(folder: string): Promise<string> {
  mkdirSync(join(folder, 'dist'), { recursive: true });
  // Copied, because Node looks for the files from the real path of this one.
  cpSync(join(CLI, 'bin'), join(folder, 'bin'), { recursive: true });
  for (const name of ['package.json', 'man']) symlinkSync(join(CLI, name), join(folder, name));
  for (const name of readdirSync(join(CLI, 'dist')))
    symlinkSync(join(CLI, 'dist', name), join(folder, 'dist', name));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  await bundleCommand(join(folder, 'dist/holdfast.cjs'));
  return join(folder, 'bin/holdfast.js');
}
