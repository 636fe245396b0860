/** Copies the built library and simulation, plants a bug in the copy, and runs it in a process of its own. */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Edit, PlantedBug } from './planted-bugs.ts';

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));
const LIBRARY = 'packages/holdfast';
const SIMULATION = 'tests/simulation/dist';
const RUN_MS_MAX = 60_000;

export interface Seen {
  readonly exitCode: number;
  readonly output: string;
}

/** Runs seed after seed until one shows a violation. */
export async function simulateWith({ edits, profile, seeds }: PlantedBug): Promise<Seen> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-planted-'));
  try {
    for (const part of [`${LIBRARY}/dist`, `${LIBRARY}/package.json`, SIMULATION])
      await cp(join(REPOSITORY, part), join(folder, part), { recursive: true });
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
    for (const edit of edits) await plant(folder, edit);
    return await run(folder, ['--profile', profile, '--seeds', String(seeds), '--first']);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function plant(folder: string, edit: Edit): Promise<void> {
  await writeFile(join(folder, LIBRARY, 'dist', edit.file), await edited(edit, folder));
}

/** The text of the file with the bug in it. */
export async function edited({ file, find, put }: Edit, folder = REPOSITORY): Promise<string> {
  const text = await readFile(join(folder, LIBRARY, 'dist', file), 'utf8');
  const found = text.split(find).length - 1;
  if (found !== 1) throw new Error(`Found ${found} times in ${file}, not once: ${find}`);
  return text.replace(find, () => put);
}

function run(folder: string, args: readonly string[]): Promise<Seen> {
  const simulation = pathToFileURL(join(folder, SIMULATION, 'index.js')).href;
  const script = `import { simulate } from ${JSON.stringify(simulation)};
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
