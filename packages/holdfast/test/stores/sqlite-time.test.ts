import { afterEach, expect, it } from 'vitest';
import { machineMonotonicMs } from '../../src/clock.js';
import { KEEP_MS } from '../../src/protocol/index.js';
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
  monotonic = 5_000.75;
  monotonicMs(): number {
    return this.monotonic;
  }
  wallMs(): number {
    return this.wall;
  }
}

function fileWithTables(): string {
  const file = freshFile();
  storeAt(file);
  return file;
}

it('starts at the wall clock, goes on with the monotonic one, in whole milliseconds', () => {
  const clocks = new SetByHand();
  const now = storeTime(connection(fileWithTables()), 'a boot', clocks);
  expect(now()).toBe(clocks.wall);
  clocks.monotonic += 1_000;
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

it('where the system names no boot, the wall clock is all there is', () => {
  const clocks = new SetByHand();
  const now = storeTime(connection(fileWithTables()), null, clocks);
  clocks.wall += 7.5;
  expect(now()).toBe(1_800_000_000_007);
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

it('the monotonic clock is counted from the start of the machine, not of the process', () => {
  expect(machineMonotonicMs()).toBeGreaterThan(performance.now());
  const before = machineMonotonicMs();
  expect(machineMonotonicMs()).toBeGreaterThanOrEqual(before);
});
