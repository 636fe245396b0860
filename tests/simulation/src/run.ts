/** Runs one world from its seed to its end, and tells what happened. */
import { befall, operate } from './mishaps.js';
import type { Profile } from './profile.js';
import type { Tally } from './tally.js';
import { World } from './world.js';

/** How long everything may take to come to rest once nothing goes wrong any more. */
const REST_MS = 120_000;
const STEP_MS = 500;
const CLOSE_MS = 10_000;

export interface RunOptions {
  readonly profile: Profile;
  readonly seed: number;
  /** Is told the whole history, line by line. */
  readonly onNote?: (line: string) => void;
}

export async function runWorld({ profile, seed, onNote }: RunOptions): Promise<Tally> {
  const world = new World(profile, seed);
  const { tally, schedule } = world;
  const onUnhandled = (reason: unknown): void => {
    const text = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
    tally.violate('unhandled rejection', schedule.nowMs, text);
  };
  if (onNote) tally.onNote = onNote;
  tally.onViolation = () => schedule.stop();
  process.on('unhandledRejection', onUnhandled);
  try {
    world.onSettled = (resident) => befall(world, resident);
    for (const crew of profile.crews) for (let at = 0; at < crew.processes; at++) world.settle(crew);
    operate(world);
    await schedule.runUntil(profile.durationMs);
    if (tally.violations.length === 0) await comeToRest(world);
  } catch (error) {
    tally.violate(
      'broken',
      schedule.nowMs,
      error instanceof Error ? (error.stack ?? error.message) : String(error),
    );
  } finally {
    process.off('unhandledRejection', onUnhandled);
  }
  return tally;
}

async function comeToRest(world: World): Promise<void> {
  const { schedule, tally, residents, calls } = world;
  world.isEnding = true;
  for (const { link, process } of residents) {
    link.isCut = false;
    link.isCalm = true;
    link.lagMs = 0;
    process.resume();
  }
  const restMs = schedule.nowMs + REST_MS;
  while (schedule.nowMs < restMs && (calls.open.size > 0 || world.beliefs.count > 0)) {
    await schedule.runUntil(schedule.nowMs + STEP_MS);
    if (tally.violations.length > 0) return;
  }
  for (const { key, what } of calls.open)
    tally.violate('hangs', schedule.nowMs, `${key}: ${what} never settled`);
  await closeAll(world);
  checkAverages(world);
}

function checkAverages({ schedule, tally, profile }: World): void {
  const { idleShare, meanWaitMs } = profile.bounds;
  const share = tally.idleMs / Math.max(tally.wantedMs, 1);
  if (share > idleShare) {
    tally.violate(
      'idle',
      schedule.nowMs,
      `keys that somebody wanted stood idle ${(share * 100).toFixed(1)} % of the time`,
    );
  }
  tally.waits.forEach(({ count, sumMs }, crew) => {
    const meanMs = sumMs / count;
    if (meanMs <= meanWaitMs) return;
    tally.violate('long wait', schedule.nowMs, `crew ${crew} waited ${meanMs.toFixed(0)} ms on average`);
  });
}

/** After `close` nothing is left: no timer, no hold, no promise. */
async function closeAll({ schedule, tally, residents, server }: World): Promise<void> {
  const closing = new Set(residents);
  for (const resident of residents) {
    const failed = (error: unknown): void => {
      tally.violate('close', schedule.nowMs, `${resident.process.name}: ${String(error)}`);
    };
    void resident.locks
      .close()
      .catch(failed)
      .finally(() => closing.delete(resident));
  }
  await schedule.runUntil(schedule.nowMs + CLOSE_MS);
  for (const { process } of closing) tally.violate('close', schedule.nowMs, `${process.name} did not close`);
  for (const { process, holdProcess } of residents) {
    if (process.timers > 0)
      tally.violate('timers left', schedule.nowMs, `${process.name}: ${process.timers}`);
    for (const [key, { holders }] of server.states) {
      if (!holders.some(({ hold, expiresAt }) => hold.process === holdProcess && expiresAt > server.now))
        continue;
      tally.violate('holds left', schedule.nowMs, `${process.name} closed and still holds ${key}`);
    }
  }
}
