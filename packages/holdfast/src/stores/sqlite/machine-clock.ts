/**
 * One clock for all processes of a Linux machine, on every runtime: the time since the boot, sleep included
 * (CLOCK_BOOTTIME). The runtime's own clock may count from the boot without sleep (Node) or from the start of the process
 * (Bun, Deno). The name of the runtime proves nothing:
 *
 * 1. The runtime's clock is compared with /proc/uptime. If they agree, it is used as it is.
 * 2. Otherwise it is used with an offset: /proc/uptime is read until its last digit changes, which takes up to 10 ms, once.
 * 3. Some containers have an /proc/uptime of their own (lxcfs). The kernel's start time of this process reveals that. Then
 *    a runtime's clock that counts from the boot is used as it is, and any other is refused.
 * 4. Sleep stops most runtimes' clocks, and moves the wall clock against them. After each such move, and once a second,
 *    the comparison is made again.
 */
import { readFileSync } from 'node:fs';
import { runtimeMs, systemClock } from '../../clock.js';
import { UnsupportedError } from '../../protocol/index.js';
import { parseStat } from './process-table.js';

export interface ClockSources {
  /** The runtime's clock: the rate of the machine's clock, with an arbitrary start. */
  runtimeMs(): number;
  wallMs(): number;
  /** How long this process has run, at least, without sleep. */
  ageMs(): number;
  /** Since the boot, sleep included, cut to 10 ms. */
  uptimeMs(): number;
  /** When this process started by that clock, cut to 10 ms. */
  startedMs(): number;
}

/** The bounds of the offset to add to the runtime's clock. */
interface Offsets {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** The precision of /proc, on every architecture that the runtimes support. */
const TICK_MS = 10;
/** Precise enough: leases end 5 ms before their time in the store. */
const EXACT_MS = 0.5;
/** On a machine too busy to meet a change of the last digit within this time, the offset may be wrong by 5 ms. */
const SEARCH_MS_MAX = 100;
const CHECK_MS = 1_000;
const JUMP_MS = 5;

let shared: (() => number) | undefined;

/** Throws `UnsupportedError` if this process cannot read the machine's clock. */
export function machineMs(): number {
  shared ??= machineClock(systemSources);
  return shared();
}

export function machineClock(sources: ClockSources): () => number {
  const first = compare(sources);
  if (!includes(first, 0) && !isMachineUptime(sources)) {
    if (countsFromBoot(sources)) return () => sources.runtimeMs();
    throw new UnsupportedError(
      'Processes that share an SQLite file need one clock, and this one has none: the clock of its runtime does not count ' +
        'from the boot of the machine, and /proc/uptime is not that of the machine, as in some containers. ' +
        'Run it on Node, or use a store with a server.',
    );
  }
  let offsetMs = offsetIn(first, sources);
  let checkedMs = sources.runtimeMs();
  let apartMs = sources.wallMs() - checkedMs;

  /** The runtime's clock and the wall clock are read first, so that the next reading notices a sleep in between. */
  function check(): void {
    const offsets = compare(sources);
    if (!includes(offsets, offsetMs)) offsetMs = offsetIn(offsets, sources);
  }

  return () => {
    const nowMs = sources.runtimeMs();
    const nowApartMs = sources.wallMs() - nowMs;
    if (nowMs - checkedMs <= CHECK_MS && Math.abs(nowApartMs - apartMs) <= JUMP_MS) return nowMs + offsetMs;
    checkedMs = nowMs;
    apartMs = nowApartMs;
    check();
    return sources.runtimeMs() + offsetMs;
  };
}

function compare(sources: ClockSources): Offsets {
  const beforeMs = sources.runtimeMs();
  const uptimeMs = sources.uptimeMs();
  const afterMs = sources.runtimeMs();
  return { fromMs: uptimeMs - afterMs, untilMs: uptimeMs + TICK_MS - beforeMs };
}

function includes({ fromMs, untilMs }: Offsets, offsetMs: number): boolean {
  return fromMs - EXACT_MS <= offsetMs && offsetMs <= untilMs + EXACT_MS;
}

/** Exactly 0 if possible, because all processes on Node then read the same clock. */
function offsetIn(first: Offsets, sources: ClockSources): number {
  if (includes(first, 0)) return 0;
  let known = first;
  const giveUpMs = sources.runtimeMs() + SEARCH_MS_MAX;
  while (known.untilMs - known.fromMs > EXACT_MS && sources.runtimeMs() < giveUpMs) {
    const next = compare(sources);
    const fromMs = Math.max(known.fromMs, next.fromMs);
    const untilMs = Math.min(known.untilMs, next.untilMs);
    // After a sleep in between, the two contradict each other.
    known = fromMs <= untilMs ? { fromMs, untilMs } : next;
  }
  return (known.fromMs + known.untilMs) / 2;
}

/** Whether this process is at least as old by the machine's uptime as by its own count. */
function isMachineUptime(sources: ClockSources): boolean {
  const ageMs = sources.ageMs();
  return sources.uptimeMs() - sources.startedMs() >= ageMs - 2 * TICK_MS;
}

function countsFromBoot(sources: ClockSources): boolean {
  const ageMs = sources.ageMs();
  return sources.runtimeMs() - ageMs >= sources.startedMs() - 2 * TICK_MS;
}

const systemSources: ClockSources = {
  runtimeMs,
  wallMs: systemClock.wallMs,
  ageMs: systemClock.monotonicMs,
  uptimeMs: () => 1_000 * numberIn('/proc/uptime', (text) => text.split(' ')[0]),
  startedMs: () => TICK_MS * numberIn('/proc/self/stat', (text) => parseStat(text)?.started),
};

function numberIn(path: string, find: (text: string) => string | undefined): number {
  const text = readFileSync(path, 'utf8');
  const found = Number(find(text) ?? Number.NaN);
  if (!Number.isFinite(found)) throw new UnsupportedError(`${path} has no readable time: ${text.trim()}`);
  return found;
}
