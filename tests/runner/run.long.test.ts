import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const runner = join(root, 'tests/runner/run.js');
/** Fails the first time that it runs. */
const unsteady = (name: string): string => `
import { existsSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
it(${JSON.stringify(name)}, () => {
  const seen = existsSync('seen');
  writeFileSync('seen', '');
  expect(seen).toBe(true);
});`;
const broken = "import { it } from 'vitest'; it('is wrong', () => { throw new Error('as always'); });";
const right = "import { it } from 'vitest'; it('is right', () => undefined);";

describe('the runner of the tests', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-runner-'));
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
    await writeFile(join(folder, 'vitest.config.js'), 'export default { test: { pool: "forks" } };');
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  async function runOf(files: Readonly<Record<string, string>>) {
    await rm(join(folder, 'seen'), { force: true });
    const names = Object.keys(files).map((name) => `${name}.test.js`);
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, `${name}.test.js`), text);
    const ended = await new Promise<{ code: number; text: string }>((done) => {
      execFile(process.execPath, [runner, ...names], { cwd: folder }, (error, text) => {
        done({ code: error ? Number(error.code) : 0, text });
      });
    });
    for (const name of names) await rm(join(folder, name));
    return ended;
  }

  it('is green where all is right, with one run', async () => {
    const { code, text } = await runOf({ right });
    expect(code, text).toBe(0);
    expect(text).not.toContain('Once more');
  });

  it('runs what failed once more, alone, and names what passed only then', async () => {
    const { code, text } = await runOf({ right, unsteady: unsteady('wakes up in time') });
    expect(code, text).toBe(0);
    expect(text).toMatch(/Once more, alone:\n {2}unsteady\.test\.js\n/);
    expect(text).toMatch(/Passed only alone:\n {2}wakes up in time: /);
  });

  it('is red when it fails again', async () => {
    const { code, text } = await runOf({ right, broken });
    expect(code, text).toBe(1);
    expect(text).toContain('Once more, alone');
    expect(text).not.toContain('Passed only alone');
  });

  it('is red at once when exclusion is at stake', async () => {
    const { code, text } = await runOf({ unsteady: unsteady('holders never overlap') });
    expect(code, text).toBe(1);
    expect(text).toContain('exclusion is at stake');
    expect(text).not.toContain('Once more');
  });

  it('is red at once when an error belongs to no test', async () => {
    const loose =
      "import { it } from 'vitest'; it('is left', () => { void Promise.reject(new Error('loose')); });";
    const { code, text } = await runOf({ loose, unsteady: unsteady('wakes up in time') });
    expect(code, text).toBe(1);
    expect(text).toContain('an error belongs to no test');
    expect(text).not.toContain('Once more');
  });

  it('is red at once when many files fail', async () => {
    const five = Array.from({ length: 5 }, (_, index) => [`broken-${index}`, broken]);
    const { code, text } = await runOf(Object.fromEntries(five));
    expect(code, text).toBe(1);
    expect(text).not.toContain('Once more');
  });
});
