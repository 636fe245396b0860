import { afterEach, expect, it } from 'vitest';
import { KEEP_MS, UnsupportedError } from '../../src/protocol/index.js';
import { type Clocks, storeTime } from '../../src/stores/sqlite/store-time.js';
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

afterEach(clearScene);

const YEAR_MS = 365 * 86_400_000;

class SetByHand implements Clocks {
  wall = 1_800_000_000_000;
  machine = 5_000.75;
  readonly machineMs = (): number => this.machine;
  readonly wallMs = (): number => this.wall;
}

function fileWithTables(): string {
  const file = freshFile();
  storeAt(file);
  return file;
}

it("starts at the wall clock, goes on with the machine's, in whole milliseconds", () => {
  const clocks = new SetByHand();
  const now = storeTime(connection(fileWithTables()), 'a boot', clocks);
  expect(now()).toBe(clocks.wall);
  clocks.machine += 1_000;
  expect(now()).toBe(1_800_000_001_000);
});

it('F11: a wall clock set by hand changes nothing, for this process or the next', () => {
  const file = fileWithTables();
  const clocks = new SetByHand();
  const now = storeTime(connection(file), 'a boot', clocks);
  clocks.wall -= YEAR_MS;
  expect(now()).toBe(1_800_000_000_000);
  clocks.wall += 3 * YEAR_MS;
  expect(storeTime(connection(file), 'a boot', clocks)()).toBe(1_800_000_000_000);
});

it('F25: after a boot with the wall clock set back, time goes on above everything decided before', async () => {
  const file = freshFile();
  const store = storeAt(file, { now: () => 1_900_000_000_000 });
  await ask(store, claimOf('k', 'a'));
  const clocks = new SetByHand();
  clocks.wall = 3_000;
  expect(storeTime(connection(file), 'another boot', clocks)()).toBeGreaterThan(1_900_000_000_000);
});

it('F10: nor does cleaning up forget how late it was', async () => {
  const file = freshFile();
  const clocks = new SetByHand();
  storeTime(connection(fileWithTables()), 'a boot', clocks);
  let late = 1_900_000_000_000;
  const store = storeAt(file, { now: () => late });
  storeTime(connection(file), 'a boot', clocks);
  await Promise.all(store.apply([claimOf('k', 'a'), releaseOf(claimOf('k', 'a'))]));
  late += KEEP_MS + 2_000;
  await Promise.all(store.apply([claimOf('x', 'a', 2), claimOf('y', 'a', 3)]));
  connection(file).exec("DELETE FROM holdfast_records WHERE key IN ('x', 'y')");
  expect(storeTime(connection(file), 'another boot', clocks)()).toBeGreaterThan(late);
});

/** With tables, and not used by anybody yet. */
function unusedFile(): string {
  const file = freshFile();
  storeAt(file, { now: () => 0 });
  return file;
}

it('where the system names no boot, the wall clock is all there is', () => {
  const clocks = new SetByHand();
  const file = unusedFile();
  const now = storeTime(connection(file), null, clocks);
  clocks.wall += 7.5;
  expect(now()).toBe(1_800_000_000_007);
  expect(storeTime(connection(file), null, clocks)()).toBe(1_800_000_000_007);
});

it('a process that can go by the wall clock only is refused where others go by the machine, and the other way round', () => {
  const clocks = new SetByHand();
  const [one, other] = [connection(unusedFile()), connection(unusedFile())];
  storeTime(one, 'a boot', clocks);
  expect(() => storeTime(one, null, clocks)).toThrow(UnsupportedError);
  expect(() => storeTime(one, null, clocks)).toThrow(/boot_id is not readable here. .*use another file/);
  storeTime(one, 'another boot', clocks);
  storeTime(other, null, clocks);
  expect(() => storeTime(other, 'a boot', clocks)).toThrow(UnsupportedError);
  expect(() => storeTime(other, 'a boot', clocks)).toThrow(/delete it, or use another one/);
  storeTime(other, null, clocks);
});

it('a process that cannot read the machine clock cannot open a file, not even one that others have opened', () => {
  const clocks = new SetByHand();
  const database = connection(unusedFile());
  storeTime(database, 'a boot', clocks);
  const machineMs = (): number => {
    throw new UnsupportedError('no clock');
  };
  expect(() => storeTime(database, 'a boot', { ...clocks, machineMs })).toThrow('no clock');
});

it('the first to open fixes the offset, however many open at once', () => {
  const file = fileWithTables();
  const [one, two] = [new SetByHand(), new SetByHand()];
  two.wall += 60_000;
  expect(storeTime(connection(file), 'b', one)()).toBe(storeTime(connection(file), 'b', two)());
});

it('two stores on one file read the same time', async () => {
  const file = freshFile();
  const [one, two] = [storeAt(file), storeAt(file)];
  const first = await ask(one, claimOf('a', 'p'));
  const second = await ask(two, claimOf('b', 'q'));
  expect(second.now - first.now).toBeGreaterThanOrEqual(0);
  expect(second.now - first.now).toBeLessThan(5_000);
});

it('probe says when the wall clock decides', async () => {
  const table = new ScriptedTable();
  table.clock = null;
  const { findings } = await storeAt(freshFile(), { table }).probe();
  expect(findings).toContainEqual({ level: 'warning', text: expect.stringMatching(/wall clock/) });
});
