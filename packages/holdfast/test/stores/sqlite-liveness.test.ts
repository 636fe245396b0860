import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, expect, it, vi } from 'vitest';
import {
  isProvablyGone,
  note,
  parseStat,
  systemProcessTable,
} from '../../src/stores/sqlite/process-table.js';
import type { SqliteStore } from '../../src/stores/sqlite/store.js';
import {
  ask,
  claimOf,
  clearScene,
  connection,
  freshFile,
  releaseOf,
  ScriptedTable,
  storeAt,
} from './sqlite-scene.js';

const children: ChildProcess[] = [];

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  clearScene();
});

const OTHER_PID = 4_000_001;

/** Two stores on one file: one noted as process 4000001, started at tick 7, and one that watches it. */
function neighbours(): { file: string; table: ScriptedTable; holder: SqliteStore; watcher: SqliteStore } {
  const file = freshFile();
  const table = new ScriptedTable();
  table.stats.set(OTHER_PID, { started: '7', zombie: false });
  const holder = storeAt(file, { table });
  return { file, table, holder, watcher: storeAt(file, { table }) };
}

/** As if the process with this name had claimed from another process. */
function moveTo(file: string, process: string, change: string): void {
  connection(file).exec(`UPDATE holdfast_processes SET ${change} WHERE process = '${process}'`);
}

async function heldElsewhere() {
  const scene = neighbours();
  await ask(scene.holder, claimOf('k', 'holder'));
  moveTo(scene.file, 'holder', `pid = ${OTHER_PID}, started = '7'`);
  return scene;
}

const claimed = async (store: SqliteStore): Promise<string> => (await ask(store, claimOf('k', 'next'))).kind;

it('a holder whose process is gone makes room at the next claim, and its mark stays', async () => {
  const { table, watcher, holder } = await heldElsewhere();
  expect(await claimed(watcher)).toBe('busy');
  table.stats.delete(OTHER_PID);
  expect(await claimed(watcher)).toBe('granted');
  expect((await ask(holder, claimOf('k', 'holder'))).kind).toBe('withdrawn');
});

it('a process id used again by another process is no life: the start time differs', async () => {
  const { table, watcher } = await heldElsewhere();
  table.stats.set(OTHER_PID, { started: '8', zombie: false });
  expect(await claimed(watcher)).toBe('granted');
});

it('planted: liveness that trusts a process id, whoever has it now, is caught by the same steps', async () => {
  const { table, watcher } = await heldElsewhere();
  const trusting = vi.spyOn(table, 'stat').mockReturnValue({ started: '7', zombie: false });
  table.stats.set(OTHER_PID, { started: '8', zombie: false });
  expect(await claimed(watcher)).toBe('busy');
  trusting.mockRestore();
  expect(await claimed(watcher)).toBe('granted');
});

it('a zombie is gone', async () => {
  const { table, watcher } = await heldElsewhere();
  table.stats.set(OTHER_PID, { started: '7', zombie: true });
  expect(await claimed(watcher)).toBe('granted');
});

it('a hidden /proc proves nothing: the ttl decides', async () => {
  const { table, watcher } = await heldElsewhere();
  table.stats.set(OTHER_PID, 'hidden');
  expect(await claimed(watcher)).toBe('busy');
});

it.each([
  ['another container', "namespace = 'pid:[2]'"],
  ['another boot, or another machine', "boot = 'boot-0'"],
  ['a process that could not read its own place', 'boot = NULL, namespace = NULL'],
])('%s proves nothing: the ttl decides', async (_, change) => {
  const { file, table, watcher } = await heldElsewhere();
  moveTo(file, 'holder', change);
  table.stats.delete(OTHER_PID);
  expect(await claimed(watcher)).toBe('busy');
});

it('a start time that was never read proves nothing while the process id is in use', async () => {
  const { file, table, watcher } = await heldElsewhere();
  moveTo(file, 'holder', 'started = NULL');
  table.stats.set(OTHER_PID, { started: '8', zombie: true });
  expect(await claimed(watcher)).toBe('busy');
});

it('a holder that was never noted is never gone', async () => {
  const { file, table, watcher } = await heldElsewhere();
  connection(file).exec('DELETE FROM holdfast_processes');
  table.stats.delete(OTHER_PID);
  expect(await claimed(watcher)).toBe('busy');
});

it('F20: a dead waiter at the head is passed over at once, whoever frees the key', async () => {
  const { file, table, holder, watcher } = neighbours();
  const held = claimOf('k', 'holder');
  await ask(holder, held);
  await ask(holder, claimOf('k', 'dead'));
  moveTo(file, 'dead', `pid = ${OTHER_PID}, started = '7'`);
  // The holder's own store knows its waiters to be alive; another process does the freeing.
  const evictor = storeAt(file, { table });
  const second = await ask(watcher, claimOf('k', 'next'));
  expect(second).toMatchObject({ kind: 'busy', position: 1 });
  table.stats.delete(OTHER_PID);
  await ask(evictor, { kind: 'evict', key: 'k', upToToken: Number.MAX_SAFE_INTEGER });
  expect(await watcher.read('k')).toMatchObject({ waiters: [{ owner: 'next', woken: true }] });
  expect(await claimed(watcher)).toBe('granted');
});

it('P24: the death of one semaphore holder frees its permit and no other', async () => {
  const { file, table, holder, watcher } = neighbours();
  const of = (name: string) => claimOf('s', name, 1, { capacity: 2 });
  await Promise.all(holder.apply([of('dies'), of('lives')]));
  moveTo(file, 'dies', `pid = ${OTHER_PID}, started = '7'`);
  expect((await ask(watcher, of('third'))).kind).toBe('busy');
  table.stats.delete(OTHER_PID);
  expect((await ask(watcher, of('third'))).kind).toBe('granted');
  expect((await ask(watcher, of('fourth'))).kind).toBe('busy');
});

it('who only looks sees what a claim would find', async () => {
  const { table, watcher } = await heldElsewhere();
  expect(await watcher.read('k')).not.toBeNull();
  table.stats.delete(OTHER_PID);
  expect(await watcher.read('k')).toBeNull();
  for await (const { key } of watcher.list({ prefix: '' })) throw new Error(`${key} is listed.`);
});

it('a recorded command counts too: both must be gone, whichever was recorded first', async () => {
  const { file, table, holder, watcher } = neighbours();
  const command = OTHER_PID + 1;
  table.stats.set(command, { started: '9', zombie: false });
  await ask(holder, claimOf('k', 'holder'));
  await holder.recordProcess(command);
  await ask(holder, claimOf('later', 'holder-2'));
  for (const name of ['holder', 'holder-2']) {
    connection(file)
      .prepare('UPDATE holdfast_processes SET pid = ?, started = ? WHERE process = ? AND pid = ?')
      .run(OTHER_PID, '7', name, process.pid);
  }
  table.stats.delete(OTHER_PID);
  expect(await claimed(watcher)).toBe('busy');
  expect((await ask(watcher, claimOf('later', 'next'))).kind).toBe('busy');
  table.stats.delete(command);
  expect(await claimed(watcher)).toBe('granted');
  expect((await ask(watcher, claimOf('later', 'next'))).kind).toBe('granted');
});

it('a command that was taken back no longer counts', async () => {
  const { file, table, holder, watcher } = neighbours();
  const command = OTHER_PID + 1;
  table.stats.set(command, { started: '9', zombie: false });
  await holder.recordProcess(command);
  await ask(holder, claimOf('k', 'holder'));
  await holder.forgetProcess(command);
  moveTo(file, 'holder', `pid = ${OTHER_PID}, started = '7'`);
  table.stats.delete(OTHER_PID);
  expect(await claimed(watcher)).toBe('granted');
});

it('only a process id can be recorded', async () => {
  const { holder } = neighbours();
  for (const pid of [0, -1, 1.5, Number.NaN]) {
    await expect(holder.recordProcess(pid)).rejects.toThrow(/not a process id/);
  }
});

it('switched off, nobody is noted and nobody is gone', async () => {
  const file = freshFile();
  const store = storeAt(file, { liveness: false });
  await ask(store, claimOf('k', 'a'));
  expect(store.traits.livenessPollMs).toBeNull();
  expect(connection(file).prepare('SELECT count(*) AS n FROM holdfast_processes').get()).toEqual({ n: 0 });
});

it('an unreadable place switches it off, and probe says so', async () => {
  const table = new ScriptedTable();
  table.namespace = null;
  const store = storeAt(freshFile(), { table });
  expect(store.traits.livenessPollMs).toBeNull();
  const { findings } = await store.probe();
  expect(findings).toContainEqual({ level: 'note', text: expect.stringMatching(/until its ttl/) });
});

it('closing takes the notes back; those of the dead go when nobody needs them', async () => {
  const { file, table, holder } = neighbours();
  const names = (): unknown[] =>
    connection(file).prepare('SELECT process FROM holdfast_processes ORDER BY process').all();
  for (let count = 0; count < 20; count++) {
    const claim = claimOf(`k${count}`, `dead-${count}`);
    await Promise.all(holder.apply([claim, releaseOf(claim)]));
  }
  await ask(holder, claimOf('still held', 'needed'));
  connection(file).exec(`UPDATE holdfast_processes SET pid = ${OTHER_PID}, started = '7'`);
  table.stats.delete(OTHER_PID);
  const newcomer = storeAt(file, { table });
  for (let count = 0; count < 200; count++) await ask(newcomer, claimOf('own', `new-${count}`));
  expect(names()).toHaveLength(201);
  await newcomer.close();
  expect(names()).toEqual([{ process: 'needed' }]);
});

it('a store that many locks use one after the other keeps few notes; one that is forgotten is noted again', async () => {
  const { file, holder, watcher } = neighbours();
  const names = (): unknown[] => connection(file).prepare('SELECT process FROM holdfast_processes').all();
  const once = async (name: string, number = 1): Promise<void> => {
    const claim = claimOf('k', name, number);
    await Promise.all(holder.apply([claim, releaseOf(claim)]));
  };
  await ask(holder, claimOf('held', 'needed'));
  for (let at = 0; at < 600; at++) await once(`closed-${at}`);
  expect(names().length).toBeLessThanOrEqual(256);
  expect(names()).toContainEqual({ process: 'needed' });
  moveTo(file, 'needed', `pid = ${OTHER_PID - 1}, started = '7'`);
  expect((await ask(watcher, claimOf('held', 'watcher'))).kind).toBe('granted');
  await once('closed-0', 2);
  const noted = connection(file).prepare("SELECT pid FROM holdfast_processes WHERE process = 'closed-0'");
  expect(noted.all()).toEqual([{ pid: process.pid }]);
});

it('reads the real process table: this process lives, an ended child is gone, a stopped one is not', async () => {
  const table = systemProcessTable();
  expect(isProvablyGone(note(process.pid, table), table)).toBe(false);
  const child = spawn('sleep', ['60']);
  children.push(child);
  await once(child, 'spawn');
  const noted = note(child.pid ?? 0, table);
  expect(noted.started).toMatch(/^\d+$/);
  expect(isProvablyGone(noted, table)).toBe(false);
  child.kill('SIGSTOP');
  await expect.poll(() => isProvablyGone(noted, table)).toBe(false);
  expect(isProvablyGone({ ...noted, started: '1' }, table)).toBe(true);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(isProvablyGone(noted, table)).toBe(true);
});

it('reads a real zombie: ended, and not collected by its parent', async () => {
  const table = systemProcessTable();
  // The shell becomes a sleep that never collects the child it inherited.
  const parent = spawn('sh', ['-c', 'sleep 0.2 & echo $!; exec sleep 60']);
  children.push(parent);
  const [text] = (await once(parent.stdout, 'data')) as [Buffer];
  const noted = note(Number(text.toString()), table);
  expect(isProvablyGone(noted, table)).toBe(false);
  await expect.poll(() => isProvablyGone(noted, table)).toBe(true);
  expect(table.exists(noted.pid)).toBe(true);
});

it('reads a stat line whatever the process is called, and tells a zombie whose threads still run', () => {
  const line = (name: string, state: string, threads: number): string =>
    `12 (${name}) ${state} 1 12 12 0 -1 4194560 100 0 0 0 1 1 0 0 20 0 ${threads} 0 98765 1000 10`;
  expect(parseStat(line('sleep', 'S', 1))).toEqual({ started: '98765', zombie: false });
  expect(parseStat(line('a) Z 1 (b c', 'S', 1))).toEqual({ started: '98765', zombie: false });
  expect(parseStat(line('node', 'Z', 1))).toEqual({ started: '98765', zombie: true });
  expect(parseStat(line('node', 'Z', 3))).toEqual({ started: '98765', zombie: false });
  expect(parseStat('')).toBeNull();
});
