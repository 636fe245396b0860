import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Child } from './child.js';
import { canSleep, sleptMachine } from './slept-machine.js';

const HOLDER = new URL('./holder.js', import.meta.url);
const ASKER = new URL('./asker.js', import.meta.url);
const OWN_CLOCK = new URL('./own-clock.js', import.meta.url).href;

const HOUR_MS = 3_600_000;
const NODE = [process.execPath];

/** Node with the clock of a runtime that counts from the start of the process, which was so long ago. */
function ownClock(agedMs: number): readonly string[] {
  return ['env', `OWN_CLOCK_MS=${agedMs}`, process.execPath, '--import', OWN_CLOCK];
}

let folder: string;
let file: string;
const children: Child[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-runtimes-'));
  file = join(folder, 'locks.db');
});

afterEach(async () => {
  await Promise.all(children.splice(0).map((child) => child.kill()));
  rmSync(folder, { recursive: true, force: true });
});

async function hold(runtime: readonly string[], through: readonly string[] = []): Promise<Child> {
  const holder = new Child(HOLDER, [file, '30000'], through, runtime);
  children.push(holder);
  await holder.said('held');
  return holder;
}

/** What a process of its own is told: "busy", or "free" with a token. */
async function ask(runtime: readonly string[], through: readonly string[] = []): Promise<string> {
  const asker = new Child(ASKER, [file], through, runtime);
  children.push(asker);
  expect(await asker.finish()).toBe(0);
  return asker.lines.join();
}

it.each([
  ['a new process holds, and an old one asks', ownClock(0), ownClock(HOUR_MS)],
  ['one holds, and Node asks', ownClock(0), NODE],
  ['Node holds, and one asks', NODE, ownClock(HOUR_MS)],
])(
  'no two holders on runtimes whose clock counts from the start of the process: %s',
  async (_, one, other) => {
    const holder = await hold(one);
    expect(await ask(other)).toBe('busy');
    await holder.finish();
    expect(await ask(other)).toMatch(/^free \d+$/);
  },
  90_000,
);

it.skipIf(!canSleep())(
  'no two holders on a machine that has slept, where Node and such a runtime read different clocks',
  async () => {
    const machine = await sleptMachine(join(folder, 'slept.db'));
    children.push(machine.process);
    for (const [one, other] of [
      [NODE, ownClock(HOUR_MS)],
      [ownClock(0), NODE],
    ] as const) {
      const holder = await hold(one, machine.inside);
      expect(await ask(other, machine.inside)).toBe('busy');
      await holder.finish();
    }
  },
  90_000,
);
