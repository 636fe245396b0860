/** Copies the built library, plants a bug in the copy, and runs the simulation on it in a process of its own. */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Edit, PlantedBug } from './planted-bugs.ts';

const LIBRARY = fileURLToPath(new URL('../../packages/holdfast/', import.meta.url));
const RUN_MS_MAX = 60_000;

export interface Seen {
  readonly exitCode: number;
  readonly output: string;
}

/** Runs seed after seed until one shows a violation. */
export async function simulateWith({ edits, profile, seeds }: PlantedBug): Promise<Seen> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-planted-'));
  try {
    await cp(join(LIBRARY, 'dist'), join(folder, 'dist'), { recursive: true });
    await cp(join(LIBRARY, 'package.json'), join(folder, 'package.json'));
    for (const edit of edits) await plant(folder, edit);
    return await run(folder, ['--profile', profile, '--seeds', String(seeds), '--first']);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function plant(folder: string, { file, find, put }: Edit): Promise<void> {
  const path = join(folder, 'dist', file);
  const text = await readFile(path, 'utf8');
  const found = text.split(find).length - 1;
  if (found !== 1) throw new Error(`Found ${found} times in ${file}, not once: ${find}`);
  await writeFile(
    path,
    text.replace(find, () => put),
  );
}

function run(folder: string, args: readonly string[]): Promise<Seen> {
  const world = pathToFileURL(join(folder, 'dist', 'testkit', 'world', 'index.js')).href;
  const script = `import { simulate } from ${JSON.stringify(world)};
process.exitCode = await simulate(process.argv.slice(1), process.stdout);`;
  const command = ['--input-type=module', '--eval', script, '--', ...args];
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, command, { timeout: RUN_MS_MAX }, (error, stdout, stderr) => {
      if (child.exitCode === null)
        reject(new Error(`The simulation did not end: ${stdout}${stderr}`, { cause: error }));
      else resolve({ exitCode: child.exitCode, output: stdout + stderr });
    });
  });
}
