/**
 * The runtimes that share SQLite files, as commands. Bun and Deno come with `npm ci`, each as a package for this system; their
 * own installation scripts are not needed.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const { platform, arch } = process;

const BUN = join(`@oven/bun-${platform}-${arch === 'arm64' ? 'aarch64' : arch}`, 'bin', 'bun');
/** Where the binary is if the package's install script was run. */
const BUN_MOVED = join('bun', 'bin', 'bun.exe');
const DENO = join(`@deno/${platform}-${arch}${platform === 'linux' ? '-glibc' : ''}`, 'deno');

/** Neither asks the network for anything, nor writes into the repository. */
export const RUNTIMES = {
  node: [process.execPath],
  bun: ['env', 'DO_NOT_TRACK=1', installed(BUN, BUN_MOVED), '--no-install'],
  deno: [
    'env',
    'DENO_NO_UPDATE_CHECK=1',
    `DENO_DIR=${join(tmpdir(), 'holdfast-deno')}`,
    installed(DENO),
    'run',
    '--allow-all',
    '--cached-only',
    '--no-lock',
    '--node-modules-dir=manual',
  ],
} as const;

export type RuntimeName = keyof typeof RUNTIMES;

/** The command that runs `script` on Deno with these permissions only. */
export function denoWith(permissions: readonly string[]): readonly string[] {
  return RUNTIMES.deno.flatMap((part) => (part === '--allow-all' ? permissions : [part]));
}

function installed(...files: readonly [string, ...string[]]): string {
  const folders = createRequire(import.meta.url).resolve.paths(files[0]) ?? [];
  const found = folders.flatMap((folder) => files.map((file) => join(folder, file))).find(existsSync);
  if (!found)
    throw new Error(`${files[0]} is missing: npm ci installs it where there is one for this system.`);
  return found;
}
