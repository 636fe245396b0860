/**
 * Limits the writes of waiters. Every write to a record makes all other pending writes to it fail, so the waiters of a
 * long queue could keep a renewal or a release from ever succeeding. So:
 *
 * 1. At most `WAITERS_MAX` queue. A claim that finds the queue full, or in a crowd has just lost a race for a place, only
 *    reads: it writes nothing unless it is granted or wakes a waiter. A claim that lost such races tries less often.
 * 2. In a crowd, a queue of `CROWD_MIN` or more, a waiter extends its life after `REFRESH_MS` instead of
 *    `WAITER_REFRESH_MS`, and after `REFRESH_LATE_MS` if it lost the race last time.
 * 3. After a lost race, a renewal, a release of a held lock and the claim of a waiter that was woken are tried again at
 *    once. Everything else pauses first, longer each time, and in a crowd a waiter gives up after `RACING_MS`.
 * 4. With fewer waiters, a claim tries until it has its place, as it would otherwise stay away for seconds. Its first lost
 *    race costs no pause, the others pauses of a few calls.
 * 5. Withdrawals take turns in the order of the queue.
 */
import {
  type Claim,
  type Command,
  type HoldId,
  type Reply,
  type State,
  sameHold,
} from '../../protocol/index.js';

/** The most waiters in a key's queue. Each costs about 250 bytes of the record, and a write every 2 s. */
export const WAITERS_MAX = 32;
const CROWD_MIN = 8;
/** Just below the longest safety poll (`POLL_MS_MAX`): one refresh per poll. */
const REFRESH_MS = 1_900;
/** After a lost race. The rest of a waiter's life (`WAITER_LIFE_MS`) is enough for one more poll. */
const REFRESH_LATE_MS = 2_800;
/**
 * In a crowd, a waiter gives way this long after its first lost race: within `ATTEMPT_MS`, and at once if calls are slow.
 */
const RACING_MS = 100;

/** A pause is drawn from 0 up to a bound, which starts here and grows fourfold with each lost race. */
const PAUSE_MS = 10;
const PAUSE_MS_MAX = 100;
/** In a short queue the bound is at least a number of calls of the store: twice as many with each lost race. */
const PAUSE_CALLS_MAX = 16;
/** Urgent commands pause only from this many lost races on, for up to this long. */
const URGENT_RACES_MAX = 8;
const URGENT_PAUSE_MS = 25;

/** After this many lost races the outcome counts as unknown, and the engine sends the command again. */
export const TRIES_MAX = 24;

export function tooManyRaces(key: string): Error {
  return new Error(
    `Other processes changed the record of "${key}" ${TRIES_MAX} times in a row before this one could.`,
  );
}

/** Whether a write on a cached record would probably fail, because others have changed it since. */
export function isCrowded(state: State | null): boolean {
  return state !== null && state.waiters.length >= CROWD_MIN;
}

export function isFree(state: State | null): boolean {
  return (
    state === null || (state.holders.length === 0 && state.rests.length === 0 && state.waiters.length === 0)
  );
}

/** The progress of a batch of commands. */
export interface Attempt {
  /** How many races it lost. */
  readonly races: number;
  readonly tookMs: number;
  /** How long a call takes. */
  readonly callMs: number;
  /** It competes for a place in the queue with a probability of 1 in 2 to this power. */
  readonly backoff: number;
  /** A random number from 0 to 1 for that, drawn once per batch. */
  readonly draw: number;
}

/** The share of claims outside the queue that write a waiter's wake-up: there are many of them, and one is enough. */
const OUTSIDERS_WAKE_SHARE = 1 / 8;

/** If reads are slow, fewer claims compete for a place in a queue that is long already. */
const SLOW_ODDS = 1 / 8;

const BACKOFF_MAX = 6;
const BACKOFF_STEP = 2;

/** The backoff of the next claim: up after a lost race, down after a read, and none after a write. */
export function backoffAfter(attempt: Attempt, wrote: boolean, seen: State | null): number {
  if (wrote) return 0;
  if (givesWay(attempt, seen)) return Math.min(attempt.backoff + BACKOFF_STEP, BACKOFF_MAX);
  return Math.max(attempt.backoff - 1, 0);
}

function givesWay({ races, tookMs }: Attempt, seen: State | null): boolean {
  return isCrowded(seen) && races > 0 && tookMs >= RACING_MS;
}

/** The pause before the next try; 0 for none. `seen`: the record that was to be replaced. `random`: from 0 to 1. */
export function pauseMsOf(
  attempt: Attempt,
  isUrgent: boolean,
  commands: readonly { readonly command: Command }[],
  seen: State | null,
  random: number,
): number {
  const { races } = attempt;
  if (isUrgent) return races < URGENT_RACES_MAX ? 0 : random * URGENT_PAUSE_MS;
  if (seen && areReleases(commands)) return turnMs(attempt, commands, seen, random);
  // A claim that pauses is not in the queue: a release meanwhile does not wake it, and the lock stays free.
  const pauses = isCrowded(seen) ? races : races - 1;
  if (pauses <= 0 || givesWay(attempt, seen)) return 0;
  const boundMs = Math.min(PAUSE_MS * 4 ** (pauses - 1), PAUSE_MS_MAX);
  const callsMs = isCrowded(seen) ? 0 : Math.min(2 ** pauses, PAUSE_CALLS_MAX) * attempt.callMs;
  return random * Math.max(boundMs, callsMs);
}

export function areReleases(commands: readonly { readonly command: Command }[]): boolean {
  return commands.every(({ command }) => command.kind === 'release');
}

/**
 * The pause of a withdrawal. Waiters that give up at once all see the same queue, and take turns of one call each in its
 * order: among few at first, and among more with every lost race.
 */
function turnMs(
  { races, callMs }: Attempt,
  commands: readonly { readonly command: Command }[],
  { waiters }: State,
  random: number,
): number {
  const size = waiters.length + 1;
  const place = waiters.findIndex(({ hold }) => commands.some(({ command }) => isOf(command, hold)));
  const share = place === -1 ? random : (place + random) / size;
  return share * Math.min(4 ** races, size) * Math.max(PAUSE_MS, callMs);
}

/** Whether a lock changes hands or is kept, so that a write on a cached record is worth its cost. */
export function isDecisive(reply: Reply): boolean {
  if (reply.kind === 'released') return reply.held;
  return reply.kind === 'granted' || reply.kind === 'renewed' || reply.kind === 'evicted';
}

/**
 * Whether a holder may lose its lock, or a waiter waits for a free one, until this is written. Claims outside the queue
 * are not urgent.
 */
export function isUrgent(command: Command, reply: Reply, seen: State | null): boolean {
  if (command.kind !== 'claim') return isDecisive(reply);
  const waiter = seen?.waiters.find(({ hold }) => isOf(command, hold));
  return waiter !== undefined && (reply.kind === 'granted' || waiter.wokenAt !== null);
}

/** The command to decide on this record: a claim joins the queue only if there is room in it. */
export function unqueuedIfFull(
  command: Command,
  state: State | null,
  earliest: number,
  attempt: Attempt,
): Command {
  if (command.kind !== 'claim' || !command.queue || state === null) return command;
  const odds = 2 ** -attempt.backoff * (attempt.tookMs >= RACING_MS ? SLOW_ODDS : 1);
  const isTurnedAway = isCrowded(state) && (givesWay(attempt, state) || attempt.draw >= odds);
  const alive = state.waiters.filter(({ expiresAt }) => expiresAt > earliest);
  if (!isTurnedAway && alive.length < WAITERS_MAX) return command;
  return alive.some(({ hold }) => hold.process === command.hold.process)
    ? command
    : { ...command, queue: false };
}

/**
 * Whether a decision that is busy for all has to be written: a waiter joins, is woken or counts again, or its life would
 * end too soon. Expired waiters and marks can stay until the next write.
 */
export function isWorthWriting(
  before: State,
  next: State,
  claims: readonly { readonly command: Command }[],
  earliest: number,
  attempt: Attempt,
): boolean {
  if (!isCrowded(before)) return true;
  const refreshMs = attempt.backoff === 0 ? REFRESH_MS : REFRESH_LATE_MS;
  const isInQueue = next.waiters.some(({ hold }) => claims.some(({ command }) => isOf(command, hold)));
  for (const waiter of next.waiters) {
    const was = before.waiters.find(({ hold }) => sameHold(hold, waiter.hold));
    if (!was) return true;
    if (was.wokenAt !== waiter.wokenAt && (isInQueue || attempt.draw < OUTSIDERS_WAKE_SHARE)) return true;
    if (!givesWay(attempt, before) && waiter.expiresAt - was.expiresAt >= refreshMs) return true;
  }
  return claims.some(({ command }) => command.kind === 'claim' && endsPlace(before, command, earliest));
}

function isOf(command: Command, hold: HoldId): boolean {
  return command.kind !== 'evict' && sameHold(command.hold, hold);
}

/** A process has one place per key: a claim with a higher number ends the one before. */
function endsPlace({ waiters }: State, claim: Claim, earliest: number): boolean {
  const { process, number } = claim.hold;
  return waiters.some(
    ({ hold, expiresAt }) => hold.process === process && hold.number < number && expiresAt > earliest,
  );
}
