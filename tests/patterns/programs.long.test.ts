/** The programs of examples/patterns, each as several processes on one SQLite file, as a fleet would run them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';

const PATTERNS = fileURLToPath(new URL('../../examples/patterns/', import.meta.url));
const SOON_MS = 30_000;

class Program {
  text = '';
  readonly child: ChildProcess;
  readonly #exit: Promise<unknown>;

  constructor(name: string, folder: string) {
    this.child = spawn(process.execPath, [join(PATTERNS, name)], { cwd: folder });
    this.child.stdout?.on('data', (part: Buffer) => {
      this.text += part.toString();
    });
    this.child.stderr?.on('data', (part: Buffer) => {
      this.text += part.toString();
    });
    this.#exit = once(this.child, 'exit');
    onTestFinished(() => void this.child.kill('SIGKILL'));
  }

  async lines(): Promise<string[]> {
    await this.#exit;
    return this.text.split('\n').filter((line) => line !== '' && !line.includes('ExperimentalWarning'));
  }
}

async function folderOfItsOwn(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-pattern-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

function start(name: string, folder: string, count = 3): Program[] {
  return Array.from({ length: count }, () => new Program(name, folder));
}

async function linesOf(programs: readonly Program[]): Promise<string[]> {
  return (await Promise.all(programs.map((program) => program.lines()))).flat();
}

describe('programs of the first day', { timeout: 90_000 }, () => {
  it('a migration runs once, and the other instances find it done', async () => {
    const folder = await folderOfItsOwn();
    const lines = await linesOf(start('migration-at-start.js', folder));
    expect(lines.sort()).toEqual(['migrated', 'up to date', 'up to date']);
  });

  it('an expired cache entry is made once for 150 requests of three processes', async () => {
    const lines = await linesOf(start('cache-stampede.js', await folderOfItsOwn()));
    expect(lines.sort()).toEqual([...Array(3).fill('1 price list for 50 requests'), 'making the price list']);
  });

  it('every job is done once', async () => {
    const folder = await folderOfItsOwn();
    const jobs = Array.from({ length: 15 }, (_, n) => `job-${n}`);
    await mkdir(join(folder, 'jobs'));
    for (const job of jobs) await writeFile(join(folder, 'jobs', job), '');
    const lines = await linesOf(start('queue-worker.js', folder));
    expect(lines.sort()).toEqual(jobs.map((job) => `did ${job}`).sort());
    expect(await readdir(join(folder, 'jobs'))).toEqual([]);
  });

  it('of twelve calls to a partner no four are sent within a second', async () => {
    const lines = await linesOf(start('rate-of-work.js', await folderOfItsOwn()));
    const sentAt = lines.map((line) => Number(line.split(' ')[2])).sort((a, b) => a - b);
    expect(sentAt).toHaveLength(12);
    // A permit is kept for a second from its grant, and the call is sent 100 ms or more after that.
    for (let n = 3; n < sentAt.length; n++)
      expect((sentAt[n] ?? 0) - (sentAt[n - 3] ?? 0)).toBeGreaterThan(500);
  });

  it('transfers in both directions lose no money, and never wait in a circle', async () => {
    const folder = await folderOfItsOwn();
    const lines = await linesOf(start('accounts-in-order.js', folder, 2));
    expect(lines).toEqual([]);
    const [ann, bob] = await Promise.all(
      ['ann', 'bob'].map(async (name) => Number(await readFile(join(folder, `${name}.txt`), 'utf8'))),
    );
    expect([ann, bob]).toEqual([80, 120]);
  });

  it('a pod that is deleted ends its piece and its locks, and the next one goes on', async () => {
    const folder = await folderOfItsOwn();
    const [first] = start('shutdown-kubernetes.js', folder, 1);
    if (!first) throw new Error('nothing was started');
    await vi.waitFor(() => expect(first.text).toContain('piece 2'), SOON_MS);
    const [second] = start('shutdown-kubernetes.js', folder, 1);
    first.child.kill('SIGTERM');
    const lines = await first.lines();
    expect([first.child.signalCode, first.child.exitCode]).not.toEqual([null, 1]);
    expect(lines.every((line) => line.startsWith('piece'))).toBe(true);
    expect(lines.length).toBeLessThan(20);
    expect((await second?.lines())?.at(-1)).toBe('piece 20');
  });

  it('one leads; when it stops or is killed, another does, with a higher term', async () => {
    const folder = await folderOfItsOwn();
    const programs = start('leader.js', folder);
    const leading = (): Program[] => programs.filter(({ text }) => text.includes('leading'));
    const terms = (): number[] => leading().map(({ text }) => Number(text.split(' ')[1]));
    const leaders = async (count: number): Promise<void> => {
      await vi.waitFor(() => expect(leading()).toHaveLength(count), SOON_MS);
    };
    await leaders(1);
    leading()[0]?.child.kill('SIGTERM');
    await leaders(2);
    for (const { child } of leading()) child.kill('SIGKILL');
    await leaders(3);
    expect(new Set(terms()).size).toBe(3);
    for (const { child } of programs) child.kill('SIGTERM');
    await linesOf(programs);
  });

  it('a report is made by one of three instances at each tick', async () => {
    const lines = await linesOf(start('nightly-report.js', await folderOfItsOwn()));
    expect(lines.length).toBeGreaterThanOrEqual(3);
    expect(new Set(lines).size).toBe(lines.length);
  });
});
