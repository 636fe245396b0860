/**
 * Keeps the writes of waiters few. Every write to a key's record makes all others under way fail, so the waiters of a
 * long line could keep a renewal or a release from ever getting through. So:
 *
 * 1. At most `LINE_MAX` stand in line. A claim that finds the line full, or that has just lost a race for a place in it, only
 *    looks: it reads, and writes nothing unless it is granted or wakes a waiter. Who lost races for a place tries less often.
 * 2. In a line of `CROWD_MIN` or more, a waiter moves its end after `REFRESH_MS` instead of `WAITER_REFRESH_MS`, after
 *    `REFRESH_LATE_MS` if it lost the race last time.
 * 3. After a lost race, a renewal, a release of a held lock and a grant are tried again at once. Everything else pauses
 *    first, longer each time, and what a waiter wants is given up after `RACING_MS`.
 */
import {
  type Claim,
  type Command,
  type HoldId,
  type Reply,
  type State,
  sameHold,
} from '../../protocol/index.js';

/** How many stand in line for a key at most. Each is about 250 bytes in the record, and a write every 2 s. */
export const LINE_MAX = 32;
const CROWD_MIN = 8;
/** Just below the longest safety poll (`POLL_MS_MAX`): one refresh per poll. */
const REFRESH_MS = 1_900;
/** After a lost race. The rest of a waiter's life (`WAITER_LIFE_MS`) is enough for one more poll. */
const REFRESH_LATE_MS = 2_800;
/** A waiter that lost a race gives way after this long: well within an attempt (`ATTEMPT_MS`), and at once when calls are slow. */
const RACING_MS = 100;

/** A pause is drawn from 0 up to a bound, which starts here and grows fourfold with each lost race. */
const PAUSE_MS = 10;
const PAUSE_MS_MAX = 100;
/** Urgent commands pause only from this many lost races on, for up to this long. */
const URGENT_RACES_MAX = 8;
const URGENT_PAUSE_MS = 25;

/** Whether a guess on this record would fail: others are likely to have changed it since. */
export function isCrowded(state: State | null): boolean {
  return state !== null && state.waiters.length >= CROWD_MIN;
}

/** What a command has tried so far. */
export interface Trial {
  /** How often others were faster. */
  readonly races: number;
  readonly tookMs: number;
  /** It races for a place in the line with a probability of 1 in 2 to this power. */
  readonly backoff: number;
  /** A random number from 0 to 1 for that, drawn once for all tries. */
  readonly draw: number;
}

/** The share of claims outside the line that store that a waiter's turn has come: there are many, and one is enough. */
const LOOKERS_WAKE_SHARE = 1 / 8;

/** Where a read takes long, fewer race for a place in a line that is not short anyway. */
const SLOW_ODDS = 1 / 8;

const BACKOFF_MAX = 6;
const BACKOFF_STEP = 2;

/** The backoff of the next claim: up after a lost race, down after a look, and none after a write. */
export function backoffAfter(trial: Trial, wrote: boolean): number {
  if (wrote) return 0;
  if (givesWay(trial)) return Math.min(trial.backoff + BACKOFF_STEP, BACKOFF_MAX);
  return Math.max(trial.backoff - 1, 0);
}

function givesWay({ races, tookMs }: Trial): boolean {
  return races > 0 && tookMs >= RACING_MS;
}

/** The upper bound of the pause before the next try; 0 for none. */
export function pauseMsMax(trial: Trial, isUrgent: boolean): number {
  const { races } = trial;
  if (isUrgent) return races < URGENT_RACES_MAX ? 0 : URGENT_PAUSE_MS;
  return races === 0 || givesWay(trial) ? 0 : Math.min(PAUSE_MS * 4 ** (races - 1), PAUSE_MS_MAX);
}

/** Whether a lock changes hands or is kept by this, so that a guess is worth a write. */
export function isDecisive(reply: Reply): boolean {
  if (reply.kind === 'released') return reply.held;
  return reply.kind === 'granted' || reply.kind === 'renewed' || reply.kind === 'evicted';
}

/** Whether somebody loses a lock, or waits for one that is free, until this is written. Outside the line, many may want it. */
export function isUrgent(command: Command, reply: Reply, seen: State | null): boolean {
  if (reply.kind !== 'granted') return isDecisive(reply);
  return seen?.waiters.some(({ hold }) => isOf(command, hold)) ?? false;
}

/** The command as it is decided on this record: a claim joins the line only if there is room in it. */
export function lookingIfFull(
  command: Command,
  state: State | null,
  earliest: number,
  trial: Trial,
): Command {
  if (command.kind !== 'claim' || !command.queue || state === null) return command;
  const odds = 2 ** -trial.backoff * (isCrowded(state) && trial.tookMs >= RACING_MS ? SLOW_ODDS : 1);
  const isTurnedAway = givesWay(trial) || trial.draw >= odds;
  const alive = state.waiters.filter(({ expiresAt }) => expiresAt > earliest);
  if (!isTurnedAway && alive.length < LINE_MAX) return command;
  return alive.some(({ hold }) => hold.process === command.hold.process)
    ? command
    : { ...command, queue: false };
}

/**
 * Whether a decision that says busy to all has to be stored: somebody joins, is woken or counts again, or a place would
 * end too soon otherwise. Expired waiters and marks can wait for the next write.
 */
export function isWorthWriting(
  before: State,
  next: State,
  claims: readonly { readonly command: Command }[],
  earliest: number,
  trial: Trial,
): boolean {
  if (!isCrowded(before)) return true;
  const refreshMs = trial.backoff === 0 ? REFRESH_MS : REFRESH_LATE_MS;
  const isInLine = next.waiters.some(({ hold }) => claims.some(({ command }) => isOf(command, hold)));
  for (const waiter of next.waiters) {
    const was = before.waiters.find(({ hold }) => sameHold(hold, waiter.hold));
    if (!was) return true;
    if (was.wokenAt !== waiter.wokenAt && (isInLine || trial.draw < LOOKERS_WAKE_SHARE)) return true;
    if (!givesWay(trial) && waiter.expiresAt - was.expiresAt >= refreshMs) return true;
  }
  return claims.some(({ command }) => command.kind === 'claim' && endsPlace(before, command, earliest));
}

function isOf(command: Command, hold: HoldId): boolean {
  return command.kind === 'claim' && sameHold(command.hold, hold);
}

/** A process has one place per key: a claim with a higher number ends the one before. */
function endsPlace({ waiters }: State, claim: Claim, earliest: number): boolean {
  const { process, number } = claim.hold;
  return waiters.some(
    ({ hold, expiresAt }) => hold.process === process && hold.number < number && expiresAt > earliest,
  );
}
