/**
 * The runtimes, as commands. Bun and Deno come with `npm ci`, each as a package for this system; their
 * own installation scripts are not needed.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../repository/shell.js';

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

/** The oldest admitted Node 22, and Node 24. */
export const OTHER_NODES = { 'Node 22': '22.12.0', 'Node 24': '24.9.0' } as const;

/**
 * Another version of Node, from the registry, kept in the folder for temporary files. It is no dependency of the repository:
 * its package brings a command `node`, which npm's scripts would run instead of yours.
 */
export async function nodeCommand(version: string): Promise<readonly [string]> {
  const name = `node-${platform}-${arch}`;
  const folder = join(tmpdir(), `holdfast-${name}-${version}`);
  const binary = join(folder, 'node_modules', name, 'bin', 'node');
  if (!existsSync(binary)) {
    const args = [
      'install',
      '--prefix',
      folder,
      '--no-audit',
      '--no-fund',
      '--ignore-scripts',
      `${name}@${version}`,
    ];
    await run('npm', args, { cwd: tmpdir(), timeoutMs: 240_000 });
  }
  return [binary];
}

export type RuntimeName = keyof typeof RUNTIMES;

/** The command that runs `script` on Deno with these permissions only. */
export function denoWith(permissions: readonly string[]): readonly string[] {
  return RUNTIMES.deno.flatMap((part) => (part === '--allow-all' ? permissions : [part]));
}

function find(...files: readonly string[]): string | undefined {
  const folders = createRequire(import.meta.url).resolve.paths('any') ?? [];
  return folders.flatMap((folder) => files.map((file) => join(folder, file))).find(existsSync);
}

function installed(...files: readonly string[]): string {
  const found = find(...files);
  if (found) return found;
  throw new Error(`${files[0]} is missing: npm ci installs it where there is one for this system.`);
}
