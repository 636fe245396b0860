/** Pending commands: decided one after the other on one record, and coordinated per key. */
import type { Clock, Timer } from '../../clock.js';
import {
  ATTEMPT_MS,
  type Busy,
  type Claim,
  type Command,
  decide,
  type HoldId,
  type Reply,
  type State,
  sameHold,
  type Wake,
} from '../../protocol/index.js';
import { type Attempt, isDecisive, isUrgent, isWorthWriting, unqueuedIfFull } from './contention.js';
import type { Found, Reading } from './register.js';

export interface PendingCommand {
  readonly command: Command;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

export interface Outcome {
  readonly state: State | null;
  /** Whether there is anything to write. */
  readonly changed: boolean;
  /** Whether it may be written on a cached record. */
  readonly decisive: boolean;
  /** Whether to try again at once after a lost race. */
  readonly urgent: boolean;
  readonly wakes: readonly Wake[];
  /** Settle the commands; called once the state is stored. */
  readonly settlers: readonly (() => void)[];
}

export function decideAll<V>(
  base: Found<V>,
  commands: readonly PendingCommand[],
  { earliest, latest }: Reading,
  attempt: Attempt,
): Outcome {
  const doubtMs = latest - earliest + base.lateMs;
  const wakes: Wake[] = [];
  const replies: Reply[] = [];
  const settlers: (() => void)[] = [];
  let { state } = base;
  let changed = false;
  let urgent = false;
  /** The stored decision number if nothing is written; null while each reply has its own. */
  let storedDecision: number | null = null;
  for (const { command, resolve, reject } of commands) {
    try {
      const asked = unqueuedIfFull(command, state, latest - doubtMs, attempt);
      const decision = decide(state, asked, latest, doubtMs);
      if (decision.changed) state = decision.state;
      changed ||= decision.changed;
      wakes.push(...decision.wakes);
      const { reply } = decision;
      replies.push(reply);
      urgent ||= isUrgent(command, reply, base.state);
      settlers.push(() => resolve(storedDecision === null ? reply : { ...reply, decision: storedDecision }));
    } catch (error) {
      // Rejects this command alone: the others of its batch are independent.
      settlers.push(() => reject(error));
    }
  }
  const isRefused = replies.every(({ kind }) => kind === 'busy' || kind === 'withdrawn');
  if (
    changed &&
    base.state &&
    state &&
    isRefused &&
    !isWorthWriting(base.state, state, commands, latest - doubtMs, attempt)
  ) {
    storedDecision = base.state.decision;
    return { state: base.state, changed: false, decisive: false, urgent, wakes, settlers };
  }
  return { state, changed, decisive: replies.some(isDecisive), urgent, wakes, settlers };
}

export function onlyClaim([first, ...others]: readonly PendingCommand[]): Claim | null {
  return others.length === 0 && first?.command.kind === 'claim' ? first.command : null;
}

/**
 * Whether the record is the one that was written. Commands that were decided in one millisecond share a number; marks and
 * evictions tell them apart, except those that `take` kept.
 */
export function isSame(there: State | null, written: State, taken: boolean): boolean {
  const textOf = ({ token, decision, holders, rests, waiters, ended, evictions }: State): string =>
    JSON.stringify([token, decision, holders, rests, waiters, taken ? [] : [ended, evictions]]);
  return there !== null && textOf(there) === textOf(written);
}

/**
 * How long after the last batch of claims began, or was answered, the next begins: with one, two or more running. Calls
 * give up before the last of these.
 */
const START_AFTER_MS = [ATTEMPT_MS, 4 * ATTEMPT_MS, 10_000] as const;

/** Commands under way together. Batches are numbered as they begin. */
export interface Batch {
  readonly number: number;
  /** Commands that are not settled yet. Others may join. */
  commands: readonly PendingCommand[];
  /** Until then it is expected to go on, as its calls were answered so far. 0 before the first answer. */
  aliveUntilMs: number;
}

function isSameRelease(one: Command, other: Command): boolean {
  return one.kind === 'release' && other.kind === 'release' && sameHold(one.hold, other.hold);
}

/** The pending commands of one key. */
export class KeyCommands {
  readonly #clock: Clock;
  /** The highest released hold of each process. */
  readonly #ended = new Map<string, { readonly number: number; readonly batch: number }>();
  /** The last busy reply to each process, and the last batch that had begun by then. */
  readonly #busyReplies = new Map<
    string,
    { readonly hold: HoldId; readonly reply: Busy; readonly batch: number }
  >();
  #batches = 0;
  /** The batch of releases that lost a race. Later releases that lose one join it. */
  #releases: Batch | null = null;
  /** Batches of claims that wait for their turn. */
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  /** When the last batch of claims began, or one was last answered. */
  #heardMs = 0;
  #callMs = 0;
  #timer: Timer | null = null;
  /** How many batches are pending. */
  count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Registers a batch. */
  begin(commands: readonly PendingCommand[]): Batch {
    this.count += 1;
    const batch = ++this.#batches;
    for (const { command } of commands) {
      if (command.kind !== 'release') continue;
      const { process, number } = command.hold;
      const before = this.#ended.get(process)?.number ?? 0;
      this.#ended.set(process, { number: Math.max(number, before), batch });
    }
    return { number: batch, commands, aliveUntilMs: 0 };
  }

  /** A call of this batch was answered, in about `callMs`, and it goes on after a pause. */
  onAnswer(batch: Batch, callMs: number, pauseMs = 0): void {
    const nowMs = this.#clock.monotonicMs();
    batch.aliveUntilMs = nowMs + pauseMs + ATTEMPT_MS + 2 * callMs;
    if (!batch.commands.every(({ command }) => command.kind === 'claim')) return;
    this.#heardMs = nowMs;
    this.#callMs = callMs;
  }

  /**
   * Releases of one process need not race each other: a release that lost a race joins another that did, and is part of
   * its next try. The release of a held lock does not wait for that. Returns whether it joined.
   */
  joinAfterRace(batch: Batch, isUrgent: boolean): boolean {
    const racing = this.#racingReleases();
    if (racing === batch) return false;
    if (!racing) this.#releases = batch;
    if (!racing || isUrgent) return false;
    racing.commands = [...racing.commands, ...batch.commands];
    return true;
  }

  /** Releases that are sent again join their first attempt, if that lost a race and goes on. Returns whether they did. */
  joinIfRepeated(commands: readonly PendingCommand[]): boolean {
    const racing = this.#racingReleases();
    const isRepeated = ({ command }: PendingCommand): boolean =>
      racing?.commands.some((other) => isSameRelease(command, other.command)) ?? false;
    if (!racing || !commands.every(isRepeated)) return false;
    racing.commands = [...racing.commands, ...commands];
    return true;
  }

  /** Takes settled commands out of the batch. Returns whether none is left: others may have joined. */
  isSettled(batch: Batch, settled: readonly PendingCommand[]): boolean {
    batch.commands = batch.commands.filter((one) => !settled.includes(one));
    if (batch.commands.length > 0) return false;
    this.#endReleases(batch);
    return true;
  }

  /** The batch is over, with any outcome. */
  end(batch: Batch): void {
    this.count -= 1;
    this.#endReleases(batch);
  }

  #endReleases(batch: Batch): void {
    if (this.#releases === batch) this.#releases = null;
  }

  #racingReleases(): Batch | null {
    const racing = this.#releases;
    return racing && this.#clock.monotonicMs() < racing.aliveUntilMs ? racing : null;
  }

  /** The same command; a busy reply is noted for `settleIfAnswered`. */
  noting(pending: PendingCommand): PendingCommand {
    const { command, resolve } = pending;
    if (command.kind !== 'claim') return pending;
    return {
      ...pending,
      resolve: (reply) => {
        if (reply.kind === 'busy') {
          this.#busyReplies.set(command.hold.process, { hold: command.hold, reply, batch: this.#batches });
        }
        resolve(reply);
      },
    };
  }

  /**
   * Settles a claim whose earlier attempt was answered busy while this one waited for its turn: a slow store is not asked
   * twice. Grants do not count: their time is measured from before the answered attempt.
   */
  settleIfAnswered({ command, resolve }: PendingCommand, batch: number): boolean {
    if (command.kind !== 'claim') return false;
    const busy = this.#busyReplies.get(command.hold.process);
    if (!busy || busy.batch < batch || !sameHold(busy.hold, command.hold)) return false;
    resolve(busy.reply);
    return true;
  }

  /** Rejects a claim whose hold a later batch has released: the claim would take a lock that nobody wants any more. */
  rejectIfReleased({ command, reject }: PendingCommand, batch: number): boolean {
    if (command.kind !== 'claim') return false;
    const ended = this.#ended.get(command.hold.process);
    if (!ended || ended.batch <= batch || ended.number < command.hold.number) return false;
    reject(new Error(`The claim of "${command.key}" was withdrawn while it was pending.`));
    return true;
  }

  /**
   * Claims of one process would only race each other, so they run one after the other. A claim that hangs delays the
   * next one by an attempt's time, and those after it by more: a slow store gets no extra work.
   */
  inTurn(work: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(() => {
        this.#running += 1;
        this.#heardMs = this.#clock.monotonicMs();
        const onEnd = (): void => {
          this.#running -= 1;
          this.#startNext();
        };
        work().finally(onEnd).then(resolve, reject);
      });
      if (this.#running === 0) this.#startNext();
      else this.#scheduleNext();
    });
  }

  #startNext(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#waiting.shift()?.();
    this.#scheduleNext();
  }

  #scheduleNext(): void {
    if (this.#waiting.length === 0 || this.#timer) return;
    const sinceMs = this.#heardMs;
    const afterMs = START_AFTER_MS[this.#running - 1] ?? START_AFTER_MS[2];
    const inMs = this.#heardMs + afterMs + 2 * this.#callMs - this.#clock.monotonicMs();
    const timer = this.#clock.timer(inMs, () => {
      this.#timer = null;
      // An answer came meanwhile: the running claim is slow, but does not hang.
      if (this.#heardMs > sinceMs) this.#scheduleNext();
      else this.#startNext();
    });
    timer.keepAlive(false);
    this.#timer = timer;
  }
}
