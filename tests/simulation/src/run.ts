/** Runs one simulation from its seed to its end. */
import { injectFaults, injectMemberFaults, scheduleEvictions } from './faults.js';
import type { Profile } from './profile.js';
import type { RunResult } from './run-result.js';
import { Simulation } from './simulation.js';

/** How long pending calls may take to settle after the last fault. */
const FINISH_MS = 120_000;
const STEP_MS = 500;
const CLOSE_MS = 10_000;

export interface RunOptions {
  readonly profile: Profile;
  readonly seed: number;
  /** Called for every line of the history. */
  readonly onNote?: (line: string) => void;
}

export async function runSimulation({ profile, seed, onNote }: RunOptions): Promise<RunResult> {
  const simulation = new Simulation(profile, seed);
  const { result, schedule } = simulation;
  const onUnhandled = (reason: unknown): void => {
    const text = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
    result.violate('unhandled rejection', schedule.nowMs, text);
  };
  if (onNote) result.onNote = onNote;
  result.onViolation = () => schedule.stop();
  process.on('unhandledRejection', onUnhandled);
  try {
    simulation.onStarted = (client) => injectFaults(simulation, client);
    for (const workload of profile.workloads)
      for (let at = 0; at < workload.processes; at++) simulation.start(workload);
    scheduleEvictions(simulation);
    injectMemberFaults(simulation);
    await schedule.runUntil(profile.durationMs);
    if (result.violations.length === 0) await finish(simulation);
  } catch (error) {
    result.violate(
      'broken',
      schedule.nowMs,
      error instanceof Error ? (error.stack ?? error.message) : String(error),
    );
  } finally {
    process.off('unhandledRejection', onUnhandled);
  }
  return result;
}

async function finish(simulation: Simulation): Promise<void> {
  const { schedule, result, clients, calls } = simulation;
  simulation.isEnding = true;
  for (const member of simulation.members) member.goOn();
  for (const { link, process, unreachable } of clients) {
    unreachable.clear();
    link.isCut = false;
    link.faultFree = true;
    link.lagMs = 0;
    process.resume();
  }
  const finishMs = schedule.nowMs + FINISH_MS;
  while (schedule.nowMs < finishMs && (calls.open.size > 0 || simulation.leases.count > 0)) {
    await schedule.runUntil(schedule.nowMs + STEP_MS);
    if (result.violations.length > 0) return;
  }
  for (const { key, what } of calls.open)
    result.violate('hangs', schedule.nowMs, `${key}: ${what} never settled`);
  await closeAll(simulation);
  checkAverages(simulation);
}

function checkAverages({ schedule, result, profile }: Simulation): void {
  const { idleShare, meanWaitMs } = profile.bounds;
  const share = result.idleMs / Math.max(result.wantedMs, 1);
  if (share > idleShare) {
    result.violate(
      'idle',
      schedule.nowMs,
      `keys that somebody wanted stood idle ${(share * 100).toFixed(1)} % of the time`,
    );
  }
  result.waits.forEach(({ count, sumMs }, workload) => {
    const meanMs = sumMs / count;
    if (meanMs <= meanWaitMs) return;
    result.violate(
      'long wait',
      schedule.nowMs,
      `workload ${workload} waited ${meanMs.toFixed(0)} ms on average`,
    );
  });
}

/** `close` leaves nothing behind: no timer, no hold, no promise. */
async function closeAll({ schedule, result, clients, server }: Simulation): Promise<void> {
  const closing = new Set(clients);
  for (const client of clients) {
    const failed = (error: unknown): void => {
      result.violate('close', schedule.nowMs, `${client.process.name}: ${String(error)}`);
    };
    void client.locks
      .close()
      .catch(failed)
      .finally(() => closing.delete(client));
  }
  await schedule.runUntil(schedule.nowMs + CLOSE_MS);
  for (const { process } of closing) result.violate('close', schedule.nowMs, `${process.name} did not close`);
  for (const { process, holdProcess } of clients) {
    if (process.timers > 0)
      result.violate('timers left', schedule.nowMs, `${process.name}: ${process.timers}`);
    for (const [key, { holders }] of server.states) {
      if (!holders.some(({ hold, expiresAt }) => hold.process === holdProcess && expiresAt > server.now))
        continue;
      result.violate('holds left', schedule.nowMs, `${process.name} closed and still holds ${key}`);
    }
  }
}
