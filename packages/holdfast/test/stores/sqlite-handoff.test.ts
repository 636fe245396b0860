import { afterEach, expect, it } from 'vitest';
import type { SqliteStore } from '../../src/stores/sqlite/store.js';
import {
  ask,
  claimOf,
  clearScene,
  connection,
  freshFile,
  releaseOf,
  renewOf,
  ScriptedTable,
  storeAt,
} from './sqlite-scene.js';

afterEach(clearScene);

const OLD_PID = 4_000_001;
const NEW_PID = 4_000_002;
const CLAIM = claimOf('k', 'old', 1, { queue: false });

interface Scene {
  readonly file: string;
  readonly table: ScriptedTable;
  readonly old: SqliteStore;
  readonly heir: SqliteStore;
  readonly watcher: SqliteStore;
  /** As if what is noted under these names had been noted by the process with this id. */
  move(names: string, pid: number): void;
  names(): readonly unknown[];
}

/** Three stores on one file. The first holds two keys, as process 4000001. */
async function scene(): Promise<Scene> {
  const file = freshFile();
  const table = new ScriptedTable();
  for (const pid of [OLD_PID, NEW_PID]) table.stats.set(pid, { started: '7', zombie: false });
  const [old, heir, watcher] = [0, 1, 2].map(() => storeAt(file, { table })) as [
    SqliteStore,
    SqliteStore,
    SqliteStore,
  ];
  await Promise.all(old.apply([CLAIM, claimOf('other', 'old', 2)]));
  const move = (names: string, pid: number): void =>
    connection(file).exec(
      `UPDATE holdfast_processes SET pid = ${pid}, started = '7' WHERE pid > 0 AND process GLOB '${names}'`,
    );
  move('old', OLD_PID);
  const select = connection(file).prepare('SELECT process, pid FROM holdfast_processes ORDER BY process');
  const names = (): readonly unknown[] =>
    (select.all() as { process: string; pid: number }[]).map(({ process, pid }) => [process, pid]);
  return { file, table, old, heir, watcher, move, names };
}

const claimed = async (store: SqliteStore, key: string, process = 'next'): Promise<string> => {
  const claim = claimOf(key, process, 9, { queue: false });
  const { kind } = await ask(store, claim);
  if (kind === 'granted') await ask(store, releaseOf(claim));
  return kind;
};

it('what was handed off outlives the process that did, before anybody adopted it; nothing else does', async () => {
  const { table, old, watcher } = await scene();
  await old.handOff?.(CLAIM.hold);
  table.stats.delete(OLD_PID);
  expect(await claimed(watcher, 'other')).toBe('granted');
  expect(await claimed(watcher, 'k')).toBe('busy');
});

it('without a handoff it is gone with its process, and cannot be renewed by anybody', async () => {
  const { table, heir } = await scene();
  table.stats.delete(OLD_PID);
  expect((await ask(heir, renewOf(CLAIM))).kind).toBe('lost');
});

it('whoever renews it stands behind it from then on: its death frees the key at once, also for the old process', async () => {
  for (const asks of ['watcher', 'old'] as const) {
    const { table, old, heir, [asks]: asking, move, names } = await scene();
    await old.handOff?.(CLAIM.hold);
    await ask(heir, renewOf(CLAIM));
    move('old/1', NEW_PID);
    expect(names()).toEqual([
      ['old', OLD_PID],
      ['old/1', NEW_PID],
    ]);
    expect(await claimed(asking, 'k')).toBe('busy');
    table.stats.delete(NEW_PID);
    expect(await claimed(asking, 'k')).toBe('granted');
    expect(await claimed(asking, 'other')).toBe('busy');
  }
});

it('an adopted hold outlives the process that made it', async () => {
  const { table, old, heir, watcher, move } = await scene();
  await old.handOff?.(CLAIM.hold);
  await ask(heir, renewOf(CLAIM));
  move('old/1', NEW_PID);
  table.stats.delete(OLD_PID);
  expect(await claimed(watcher, 'k')).toBe('busy');
  expect(await claimed(watcher, 'other')).toBe('granted');
  expect((await ask(heir, renewOf(CLAIM))).kind).toBe('renewed');
});

it('it may go from hand to hand, and back', async () => {
  const { table, old, heir, watcher, names } = await scene();
  await old.handOff?.(CLAIM.hold);
  await ask(heir, renewOf(CLAIM));
  await heir.handOff?.(CLAIM.hold);
  expect(names()).toEqual([
    ['old', OLD_PID],
    ['old/1', 0],
  ]);
  await ask(old, renewOf(CLAIM));
  expect(names()).toEqual([['old', OLD_PID]]);
  table.stats.delete(OLD_PID);
  expect(await claimed(watcher, 'k')).toBe('granted');
});

it('the notes of an adopted hold go with it, released or lost', async () => {
  const { old, heir, watcher, names } = await scene();
  await old.handOff?.(CLAIM.hold);
  await ask(heir, renewOf(CLAIM));
  await ask(heir, releaseOf(CLAIM));
  expect(names()).toEqual([['old', OLD_PID]]);
  const again = claimOf('k', 'old', 3, { queue: false });
  await ask(old, again);
  await old.handOff?.(again.hold);
  await ask(heir, renewOf(again));
  await ask(watcher, { kind: 'evict', key: 'k', upToToken: Number.MAX_SAFE_INTEGER });
  await ask(heir, renewOf(again));
  expect(names()).toEqual([['old', OLD_PID]]);
});

it('a late renewal of what was released leaves no note', async () => {
  const { old, heir, names } = await scene();
  await old.handOff?.(CLAIM.hold);
  await ask(heir, renewOf(CLAIM));
  await ask(heir, releaseOf(CLAIM));
  await ask(heir, renewOf(CLAIM));
  expect(names()).toEqual([['old', OLD_PID]]);
});

it('a store closed with an adopted hold leaves it to its ttl, though the process that made it is gone', async () => {
  const { table, old, heir, watcher } = await scene();
  await old.handOff?.(CLAIM.hold);
  await ask(heir, renewOf(CLAIM));
  await heir.close();
  table.stats.delete(OLD_PID);
  expect(await claimed(watcher, 'k')).toBe('busy');
});

it('a command recorded by the adopter counts for what it adopted: both must be gone', async () => {
  const { table, old, heir, watcher, move } = await scene();
  const command = NEW_PID + 1;
  table.stats.set(command, { started: '9', zombie: false });
  await old.handOff?.(CLAIM.hold);
  await ask(heir, renewOf(CLAIM));
  move('old/1', NEW_PID);
  await heir.recordProcess(command);
  table.stats.delete(NEW_PID);
  expect(await claimed(watcher, 'k')).toBe('busy');
  table.stats.delete(command);
  expect(await claimed(watcher, 'k')).toBe('granted');
});

it('the note of what nobody adopted goes once no record needs it', async () => {
  const { file, table, old, watcher, names } = await scene();
  await old.handOff?.(CLAIM.hold);
  table.stats.delete(OLD_PID);
  for (let count = 0; count < 60; count++) await ask(watcher, claimOf('busy', `new-${count}`));
  expect(names()).toContainEqual(['old/1', 0]);
  connection(file).exec(`DELETE FROM holdfast_records WHERE key IN ('k', 'other')`);
  for (let count = 60; count < 900; count++) await ask(watcher, claimOf('busy', `new-${count}`));
  expect(names()).not.toContainEqual(['old/1', 0]);
});

it('switched off, there is nothing to clear', async () => {
  const store = storeAt(freshFile(), { liveness: false });
  await ask(store, CLAIM);
  await store.handOff?.(CLAIM.hold);
  expect((await ask(store, renewOf(CLAIM))).kind).toBe('renewed');
});
