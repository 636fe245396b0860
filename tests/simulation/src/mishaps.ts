/** What goes wrong besides single messages: pauses, suspended machines, crashes, cut-offs, clocks set by hand, evictions. */
import { ANSWERS_MS } from './calls.js';
import type { Dice } from './dice.js';
import { storeKeyOf } from './profile.js';
import type { Resident } from './resident.js';
import type { World } from './world.js';

const FORWARD_MS = [20, 20_000] as const;
const BACK_MS = [20, 3_600_000] as const;
const LAG_MS = [50, 1_500] as const;

/** Calls `run` again and again at random moments, while the process lives and the world goes on. */
function recur(world: World, meanMs: number | undefined, dice: Dice, run: () => boolean): void {
  if (meanMs === undefined) return;
  world.schedule.at(world.schedule.nowMs + dice.gap(meanMs), () => {
    if (world.isEnding || !run()) return;
    recur(world, meanMs, dice, run);
  });
}

export function befall(world: World, resident: Resident): void {
  const { mishaps } = world.profile;
  const { process, link } = resident;
  const dice = world.dice.fork();
  const isAlive = (): boolean => process.phase !== 'crashed';

  function pause(suspend: boolean): boolean {
    if (process.phase !== 'running') return isAlive();
    world.tally.fault(suspend ? 'suspend' : 'pause');
    world.tally.note(world.schedule.nowMs, process.name, suspend ? 'is suspended' : 'is paused');
    process.pause({ suspend });
    world.schedule.at(world.schedule.nowMs + dice.scaled(mishaps.lastMs), () => {
      world.tally.note(world.schedule.nowMs, process.name, 'goes on');
      link.note(world.server.states.keys());
      process.resume();
    });
    return true;
  }

  recur(world, mishaps.pauseMs, dice, () => pause(false));
  recur(world, mishaps.suspendMs, dice, () => pause(true));
  recur(world, mishaps.cutMs, dice, () => {
    if (link.isCut) return isAlive();
    world.tally.fault('cut off');
    world.tally.note(world.schedule.nowMs, process.name, 'is cut off');
    link.isCut = true;
    world.schedule.quietlyAt(world.schedule.nowMs + dice.scaled(mishaps.lastMs), () => {
      world.tally.note(world.schedule.nowMs, process.name, 'is back');
      link.note(world.server.states.keys());
      link.isCut = false;
    });
    return isAlive();
  });
  recur(world, mishaps.lagMs, dice, () => {
    world.tally.fault('lag');
    link.lagMs = dice.scaled(LAG_MS);
    world.schedule.quietlyAt(world.schedule.nowMs + dice.scaled(mishaps.lastMs), () => {
      link.note(world.server.states.keys());
      link.lagMs = 0;
    });
    return isAlive();
  });
  recur(world, mishaps.restartMs, dice, () => {
    if (process.phase !== 'running' || resident.isClosing) return isAlive();
    world.tally.fault('restart');
    world.tally.note(world.schedule.nowMs, process.name, 'closes');
    void world.retire(resident);
    return false;
  });
  recur(world, mishaps.clockJumpMs, dice, () => {
    world.tally.fault('clock jump');
    // Set back while the machine sleeps, neither clock could tell how long it slept: no lease survives that.
    const back = mishaps.suspendMs === undefined && dice.chance(0.5);
    world.tally.note(world.schedule.nowMs, process.name, 'sets its clock', back ? 'back' : 'forward');
    process.setWallClock(back ? -dice.scaled(BACK_MS) : dice.scaled(FORWARD_MS));
    return isAlive();
  });
  recur(world, mishaps.crashMs, dice, () => {
    if (!isAlive() || resident.isClosing) return false;
    world.tally.fault('crash');
    world.tally.note(world.schedule.nowMs, process.name, 'crashes');
    world.crash(resident);
    return false;
  });
}

/** Operators end whatever holds a key, from any process that can. */
export function operate(world: World): void {
  const dice = world.dice.fork();
  for (const { name } of world.profile.keys) {
    recur(world, world.profile.mishaps.evictionMs, dice, () => {
      const well = world.residents.filter(({ process }) => process.phase === 'running');
      const resident = well[Math.floor(dice.next() * well.length)];
      if (resident) void evict(world, resident, name);
      return true;
    });
  }
}

async function evict(world: World, resident: Resident, name: string): Promise<void> {
  const wants = { permits: 0, capacity: 1 };
  const call = world.calls.begin({
    resident,
    key: storeKeyOf(name),
    what: 'evict',
    wants,
    boundMs: ANSWERS_MS,
  });
  try {
    const count = await resident.locks.evict(name);
    if (count > 0) world.tally.fault('eviction');
  } catch (error) {
    world.sort(error, resident, name);
  } finally {
    world.calls.end(call);
  }
}
