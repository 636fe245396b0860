/** Faults of processes and links: pauses, suspended machines, crashes, cut-offs, clocks set by hand, evictions. */
import type { Client } from './client.js';
import type { RandomSource } from './random-source.js';
import type { Simulation } from './simulation.js';

const FORWARD_MS = [20, 20_000] as const;
const BACK_MS = [20, 3_600_000] as const;
const LAG_MS = [50, 1_500] as const;

/** Calls `run` at random moments until it returns false or the simulation ends. */
function repeatAtRandom(
  simulation: Simulation,
  meanMs: number | undefined,
  random: RandomSource,
  run: () => boolean,
): void {
  if (meanMs === undefined) return;
  simulation.schedule.after(random.gap(meanMs), () => {
    if (simulation.isEnding || !run()) return;
    repeatAtRandom(simulation, meanMs, random, run);
  });
}

export function injectFaults(simulation: Simulation, client: Client): void {
  const { faultIntervals } = simulation.profile;
  const { process, link } = client;
  const random = simulation.random.fork();
  const isAlive = (): boolean => process.phase !== 'crashed';

  function pause(suspend: boolean): boolean {
    if (process.phase !== 'running') return isAlive();
    simulation.result.fault(suspend ? 'suspend' : 'pause');
    simulation.note(process.name, suspend ? 'is suspended' : 'is paused');
    process.pause({ suspend });
    simulation.schedule.after(random.scaled(faultIntervals.lastMs), () => {
      simulation.note(process.name, 'goes on');
      link.note(simulation.server.states.keys());
      process.resume();
    });
    return true;
  }

  injectPartialCuts(simulation, client);
  repeatAtRandom(simulation, faultIntervals.pauseMs, random, () => pause(false));
  repeatAtRandom(simulation, faultIntervals.suspendMs, random, () => pause(true));
  repeatAtRandom(simulation, faultIntervals.cutMs, random, () => {
    if (link.isCut) return isAlive();
    simulation.result.fault('cut off');
    simulation.note(process.name, 'is cut off');
    link.isCut = true;
    simulation.schedule.quietlyAfter(random.scaled(faultIntervals.lastMs), () => {
      simulation.note(process.name, 'is back');
      link.note(simulation.server.states.keys());
      link.isCut = false;
    });
    return isAlive();
  });
  repeatAtRandom(simulation, faultIntervals.lagMs, random, () => {
    simulation.result.fault('lag');
    link.lagMs = random.scaled(LAG_MS);
    simulation.schedule.quietlyAfter(random.scaled(faultIntervals.lastMs), () => {
      link.note(simulation.server.states.keys());
      link.lagMs = 0;
    });
    return isAlive();
  });
  repeatAtRandom(simulation, faultIntervals.restartMs, random, () => {
    if (process.phase !== 'running' || client.isClosing) return isAlive();
    simulation.result.fault('restart');
    simulation.note(process.name, 'closes');
    void simulation.restart(client);
    return false;
  });
  repeatAtRandom(simulation, faultIntervals.clockJumpMs, random, () => {
    simulation.result.fault('clock jump');
    // A clock set back while the machine is suspended would hide the suspension from both clocks: no lease survives that.
    const back = faultIntervals.suspendMs === undefined && random.chance(0.5);
    simulation.note(process.name, 'sets its clock', back ? 'back' : 'forward');
    process.setWallClock(back ? -random.scaled(BACK_MS) : random.scaled(FORWARD_MS));
    return isAlive();
  });
  repeatAtRandom(simulation, faultIntervals.crashMs, random, () => {
    if (!isAlive() || client.isClosing) return false;
    simulation.result.fault('crash');
    simulation.note(process.name, 'crashes');
    simulation.crash(client);
    return false;
  });
}

/** The servers of a quorum are paused and crash, each by itself. */
export function injectMemberFaults(simulation: Simulation): void {
  const { members } = simulation.profile;
  if (!members) return;
  const random = simulation.random.fork();
  for (const member of simulation.members) {
    const stop = (kind: 'member paused' | 'member down', run: () => void) => (): boolean => {
      if (member.phase !== 'up') return true;
      simulation.result.fault(kind);
      simulation.note(`m${member.place}`, kind);
      run();
      simulation.schedule.quietlyAfter(random.scaled(members.lastMs), () => {
        simulation.noteFault();
        simulation.note(`m${member.place}`, 'is back');
        member.goOn();
      });
      return true;
    };
    repeatAtRandom(
      simulation,
      members.pauseMs,
      random,
      stop('member paused', () => member.pause()),
    );
    repeatAtRandom(
      simulation,
      members.crashMs,
      random,
      stop('member down', () => member.crash()),
    );
  }
}

/** A process is cut off from one server of the quorum, and reaches the others. */
function injectPartialCuts(simulation: Simulation, { process, link, unreachable }: Client): void {
  const { members } = simulation.profile;
  if (!members) return;
  const random = simulation.random.fork();
  for (const { place } of simulation.members) {
    repeatAtRandom(simulation, members.cutMs, random, () => {
      if (process.phase === 'crashed') return false;
      if (unreachable.has(place)) return true;
      simulation.result.fault('member cut off');
      unreachable.add(place);
      simulation.schedule.quietlyAfter(random.scaled(members.lastMs), () => {
        link.note(simulation.server.states.keys());
        unreachable.delete(place);
      });
      return true;
    });
  }
}

/** Operators evict every key now and then, through a random running process. */
export function scheduleEvictions(simulation: Simulation): void {
  const random = simulation.random.fork();
  for (const { name } of simulation.profile.keys) {
    repeatAtRandom(simulation, simulation.profile.faultIntervals.evictionMs, random, () => {
      const well = simulation.clients.filter(({ process }) => process.phase === 'running');
      const client = well[Math.floor(random.next() * well.length)];
      if (client) void evict(simulation, client, name);
      return true;
    });
  }
}

async function evict(simulation: Simulation, client: Client, name: string): Promise<void> {
  const call = simulation.calls.begin(client, name, 'evict', { permits: 0, capacity: 1 });
  try {
    const count = await client.locks.evict(name);
    if (count > 0) simulation.result.fault('eviction');
  } catch (error) {
    simulation.countError(error, client, name);
  } finally {
    simulation.calls.end(call);
  }
}
