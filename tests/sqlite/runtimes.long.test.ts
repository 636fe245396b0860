/** Node, Bun and Deno on one SQLite file. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from 'holdfast/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { denoWith, RUNTIMES, type RuntimeName } from '../packages/runtime.js';
import { Child } from './child.js';
import { canSleep, sleptMachine } from './slept-machine.js';

const WORKER = new URL('./runtime-worker.js', import.meta.url);
const ASKER = new URL('./asker.js', import.meta.url);
const HOLDER = new URL('./holder.js', import.meta.url);
const NAMES = Object.keys(RUNTIMES) as RuntimeName[];
const OF_EACH = 2;
/** Long enough that nobody loses the lock on a busy machine, and shorter than the contest: so ages differ by more. */
const TTL_MS = 5_000;

let folder: string;
let file: string;
let journal: string;
const fleet: { readonly name: RuntimeName; readonly child: Child }[] = [];
const others: Child[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-runtimes-'));
  file = join(folder, 'locks.db');
  journal = join(folder, 'journal');
  writeFileSync(journal, '');
});

afterEach(async () => {
  await Promise.all(
    [...fleet.splice(0).map(({ child }) => child), ...others.splice(0)].map((child) => child.kill()),
  );
  rmSync(folder, { recursive: true, force: true });
});

interface Line {
  readonly what: string;
  readonly pid: number;
  readonly name: RuntimeName;
  readonly token: number;
}

function linesOf(text: string): readonly Line[] {
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [what = '', pid, name, token] = line.split(' ');
      return { what, pid: Number(pid), name: name as RuntimeName, token: Number(token) };
    });
}

function start(name: RuntimeName, through: readonly string[]): void {
  const child = new Child(WORKER, [file, journal, String(TTL_MS), name], through, RUNTIMES[name]);
  fleet.push({ name, child });
}

/** Kills whoever has the lock, again and again, and puts a new process of the same runtime in its place. */
async function contest(runMs: number, through: readonly string[] = []): Promise<Record<RuntimeName, number>> {
  const seed = Number(process.env.HOLDFAST_SEED ?? Math.floor(Math.random() * 2 ** 32));
  const random = seededRandom(seed);
  const kills: Record<RuntimeName, number> = { node: 0, bun: 0, deno: 0 };
  for (let at = 0; at < OF_EACH; at++) for (const name of NAMES) start(name, through);
  await Promise.all(fleet.map(({ child }) => child.said('ready', 60_000)));
  const untilMs = performance.now() + runMs;
  while (performance.now() < untilMs) {
    await sleep(random.between(200, 600));
    const inside = linesOf(readFileSync(journal, 'utf8')).at(-1);
    const victim = fleet.findIndex(({ child }) => child.pid === inside?.pid);
    const [killed] = victim === -1 ? [] : fleet.splice(victim, 1);
    if (!killed) continue;
    await killed.child.kill();
    kills[killed.name] += 1;
    start(killed.name, through);
  }
  await Promise.all(fleet.map(({ child }) => child.said('ready', 60_000)));
  const codes = await Promise.all(fleet.map(({ child }) => child.finish(60_000)));
  console.log(`seed ${seed}, killed ${JSON.stringify(kills)}`);
  expect(codes.every((code) => code === 0)).toBe(true);
  return kills;
}

/** Turns during which another one began, although their holder still held the lock by its own account. */
function overlaps(lines: readonly Line[]): readonly string[] {
  const found: string[] = [];
  lines.forEach(({ what, pid, token, name }, from) => {
    if (what !== 'in') return;
    const until = lines.findIndex(
      (line, at) => at > from && line.what === 'out' && line.token === token && line.pid === pid,
    );
    const second = lines.slice(from + 1, until).find((line) => line.what === 'in');
    if (until !== -1 && second) found.push(`${name} ${token} and ${second.name} ${second.token}`);
  });
  return found;
}

function expectOneHolder(kills: Record<RuntimeName, number>): void {
  const lines = linesOf(readFileSync(journal, 'utf8'));
  const turns = lines.filter(({ what }) => what === 'in');
  const followed = new Set(turns.slice(1).map(({ name }, at) => `${turns[at]?.name} ${name}`));
  console.log(`${turns.length} turns, lost ${lines.filter(({ what }) => what === 'lost').length}`);
  expect(overlaps(lines)).toEqual([]);
  const tokens = turns.map(({ token }) => token);
  expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  // So that this says something: everybody was killed, and the lock went from each runtime to each.
  for (const name of NAMES) expect(kills[name]).toBeGreaterThan(0);
  expect(followed.size).toBe(NAMES.length ** 2);
}

it('Node, Bun and Deno contend for one lock while holders are killed: never two holders, and tokens rise', async () => {
  expectOneHolder(await contest(25_000));
});

it.skipIf(!canSleep())('the same on a machine that has slept for ten hours', async () => {
  const machine = await sleptMachine(join(folder, 'slept.db'));
  others.push(machine.process);
  expectOneHolder(await contest(15_000, machine.inside));
});

it.each(NAMES.flatMap((one) => NAMES.map((other) => [one, other] as const)))(
  'what %s holds, %s is refused; after a kill -9 it has it, long before the ttl of 30 s',
  async (one, other) => {
    const holder = new Child(HOLDER, [file, '30000'], [], RUNTIMES[one]);
    others.push(holder);
    await holder.said('held');
    const ask = async (): Promise<string> => {
      const asker = new Child(ASKER, [file], [], RUNTIMES[other]);
      others.push(asker);
      expect(await asker.finish()).toBe(0);
      return asker.lines.join();
    };
    expect(await ask()).toBe('busy');
    await holder.kill();
    expect(await ask()).toMatch(/^free/);
  },
);

it('Deno without the permission to read /proc is refused, and told which one', async () => {
  const permissions = ['--allow-read', '--allow-write', '--allow-env', '--allow-sys', '--no-prompt'];
  const asker = new Child(ASKER, [file], [], denoWith(permissions));
  others.push(asker);
  expect(await asker.finish()).not.toBe(0);
  expect(asker.errors).toMatch(/UnsupportedError: .*\/proc.*--allow-all/);
});
