/**
 * Makes a store of any engine that can replace a record on the condition that it is unchanged since it was read.
 *
 * 1. Takes the key's record from the cache, or reads it.
 * 2. Decides the commands on it with `decide`.
 * 3. Writes the result on the condition that the record is unchanged, then settles the commands.
 * 4. When another process was faster, decides again on the record that is there now.
 *
 * So every change is decided on the record that it replaces. A cached record in step 1 makes an operation one call while
 * no other process uses the key. A refusal (busy, lost) on a cached record is never believed: the record is read first. A
 * rejection means that a write may or may not have been executed; then the key's record leaves the cache.
 */
import { type Clock, systemClock } from '../../clock.js';
import { ignore } from '../../protocol/ignore.js';
import {
  type Command,
  NotExecutedError,
  type Reply,
  type Snapshot,
  snapshotOf,
  UnsupportedError,
} from '../../protocol/index.js';
import { groupedBy } from '../clients/grouped.js';
import { CallTime } from './call-time.js';
import {
  type Attempt,
  areReleases,
  backoffAfter,
  isCrowded,
  isFree,
  pauseMsOf,
  TRIES_MAX,
  tooManyRaces,
} from './contention.js';
import {
  type Batch,
  decideAll,
  isSame,
  KeyCommands,
  type Outcome,
  onlyClaim,
  type PendingCommand,
} from './pending-commands.js';
import { RecentMap } from './recent-map.js';
import type { Found, Reading, Register, StoreTime } from './register.js';
import { SharedCall } from './shared-call.js';

/** Options of `CompareAndSwap`. */
export interface CompareAndSwapOptions {
  /** The store's name, for messages. */
  readonly name: string;
  /** Whether claims may join the queue. */
  readonly queue: boolean;
  /** Default: the clock of this machine. */
  readonly clock?: Clock;
}

const CACHED_MAX = 50_000;
const SAMPLES_MAX = 3;
/** With many waiters, a write on an older cached record is likely to fail, so the record is read first. */
const FRESH_MS = 100;

interface CachedRecord<V> {
  readonly found: Found<V>;
  readonly atMs: number;
  /** See `Attempt`. */
  readonly backoff: number;
}

/**
 * Applies commands through a `Register`: reads the record, calls `decide`, and writes unless another process has written
 * since.
 */
export class CompareAndSwap<V> {
  readonly #register: Register<V>;
  readonly #time: StoreTime;
  readonly #name: string;
  readonly #queue: boolean;
  readonly #clock: Clock;
  readonly #cache = new RecentMap<string, CachedRecord<V>>(CACHED_MAX);
  readonly #sample: SharedCall<void>;
  readonly #byKey = new Map<string, KeyCommands>();
  /** Keys whose record is being read by `refresh`. */
  readonly #refreshing = new Set<string>();
  readonly #callTime = new CallTime();
  #closed = false;

  constructor(register: Register<V>, time: StoreTime, options: CompareAndSwapOptions) {
    this.#register = register;
    this.#time = time;
    this.#name = options.name;
    this.#queue = options.queue;
    this.#clock = options.clock ?? systemClock;
    this.#sample = new SharedCall(() => time.sample(), this.#clock);
  }

  apply(commands: readonly Command[]): readonly Promise<Reply>[] {
    const pending: PendingCommand[] = [];
    const replies = commands.map(
      (given) =>
        new Promise<Reply>((resolve, reject) => {
          const command = given.kind === 'claim' && !this.#queue ? { ...given, queue: false } : given;
          pending.push({ command, resolve, reject });
        }),
    );
    for (const [key, ofKey] of groupedBy(pending, ({ command }) => command.key)) this.#start(key, ofKey);
    return replies;
  }

  async read(key: string): Promise<Snapshot | null> {
    this.checkOpen();
    const { state, lateMs } = await this.#register.read(key);
    const { earliest } = await this.now();
    return snapshotOf(key, state, earliest - lateMs);
  }

  /** The store's time; asks the store if it is unknown. */
  async now(): Promise<Reading> {
    this.checkOpen();
    return this.#time.reading() ?? (await this.#sampled());
  }

  /**
   * Others joined the queue of a key that this process holds, so its cached record is outdated: reads it now, so that the
   * release can be one write. Not in a crowd, whose record changes all the time.
   */
  refresh(key: string): void {
    const cached = this.#cache.get(key);
    if (!cached || isCrowded(cached.found.state) || this.#refreshing.has(key)) return;
    this.#refreshing.add(key);
    this.#register
      .read(key)
      .then(
        (found) => {
          // A write of this process may have replaced the record meanwhile.
          if (this.#closed || this.#cache.get(key) !== cached) return;
          this.#cache.set(key, { ...cached, found, atMs: this.#clock.monotonicMs() });
        },
        // This read only saves time: the next command reads the record itself, and reports the error.
        ignore,
      )
      .finally(() => this.#refreshing.delete(key));
  }

  /** Empties the cache: another engine may answer now, and the same version is another record there. */
  forget(): void {
    this.#cache.clear();
  }

  close(): void {
    this.#closed = true;
    this.forget();
  }

  /** Throws once it is closed. */
  checkOpen(): void {
    if (this.#closed) throw new UnsupportedError(`This ${this.#name} store is closed.`);
  }

  #start(key: string, all: readonly PendingCommand[]): void {
    const ofKey = this.#byKey.get(key) ?? new KeyCommands(this.#clock);
    const commands = all.filter((one) => this.#admit(one)).map((one) => ofKey.noting(one));
    if (commands.length === 0 || ofKey.joinIfRepeated(commands)) return;
    this.#byKey.set(key, ofKey);
    const batch = ofKey.begin(commands);
    const work = (): Promise<void> => this.#settle(key, ofKey, batch);
    const claims = commands.every(({ command }) => command.kind === 'claim');
    const onEnd = (): void => {
      ofKey.end(batch);
      if (ofKey.count === 0) this.#byKey.delete(key);
    };
    (claims ? ofKey.inTurn(work) : work()).then(onEnd, (error: unknown) => {
      onEnd();
      this.#cache.delete(key);
      for (const { reject } of batch.commands) reject(error);
    });
  }

  #admit({ command, reject }: PendingCommand): boolean {
    try {
      this.checkOpen();
      this.#register.check?.(command);
      return true;
    } catch (error) {
      reject(error);
      return false;
    }
  }

  async #settle(key: string, ofKey: KeyCommands, batch: Batch): Promise<void> {
    const register = this.#register;
    batch.commands = batch.commands.filter((one) => !ofKey.settleIfAnswered(one, batch.number));
    if (batch.commands.length === 0) return;
    const heard = async <T>(call: Promise<T>): Promise<T> => {
      const sentMs = this.#clock.monotonicMs();
      const answer = await call;
      this.#callTime.note(this.#clock.monotonicMs() - sentMs);
      ofKey.onAnswer(batch, this.#callTime.ms);
      return answer;
    };
    const cached = this.#cache.get(key);
    const sinceMs = this.#clock.monotonicMs();
    const isFresh = cached !== undefined && sinceMs - cached.atMs < FRESH_MS;
    const isGuessed = cached
      ? isFresh || !isCrowded(cached.found.state)
      : batch.commands.some(({ command }) => command.kind === 'claim');
    let certain = !isGuessed;
    let base = isGuessed ? (cached?.found ?? register.absent) : await heard(register.read(key));
    const backoff = cached?.backoff ?? 0;
    const draw = this.#clock.random();
    let races = 0;
    const attempt = (): Attempt => ({
      races,
      backoff,
      draw,
      tookMs: this.#clock.monotonicMs() - sinceMs,
      callMs: this.#callTime.ms,
    });
    const finish = (found: Found<V>, { changed, settlers, wakes }: Outcome): void => {
      const atMs = this.#clock.monotonicMs();
      if (!this.#closed)
        this.#cache.set(key, { found, atMs, backoff: backoffAfter(attempt(), changed, found.state) });
      for (const settle of settlers) settle();
      if (wakes.length > 0) register.wake?.(key, wakes);
    };
    for (let tries = 1; tries <= TRIES_MAX; tries++) {
      const commands = batch.commands.filter((one) => !ofKey.rejectIfReleased(one, batch.number));
      batch.commands = commands;
      if (commands.length === 0) return;
      const reading = this.#readingFor(base) ?? (await this.#sampled());
      const { jumps } = this.#time;
      const outcome = decideAll(base, commands, reading, attempt());
      const next = outcome.changed ? outcome.state : null;
      if (next === null && certain) {
        finish(base, outcome);
        if (ofKey.isSettled(batch, commands)) return;
        continue;
      }
      if (next === null || !(certain || outcome.decisive || isFresh)) {
        base = await heard(register.read(key));
        certain = true;
        continue;
      }
      // The key was seen free, or never seen: the engine may have a better condition than the unchanged record.
      const taken = register.take && !certain && isFree(base.state) ? onlyClaim(commands) : null;
      const written = await heard(
        taken && register.take
          ? register.take(taken, next, reading.latest)
          : register.write(key, next, base, reading.latest, outcome.wakes),
      );
      if (written.kind === 'written') {
        if (this.#time.jumps !== jumps && next.holders.length > 0) {
          // The holder would count a whole ttl from now, and all others from a time long ago.
          throw new Error(
            `A clock stood still while the record of "${key}" was written: that of the ${this.#name} store or of this machine.`,
          );
        }
        const { version, lateMs, state = next, woken } = written;
        base = { version, lateMs, state };
        certain = true;
        finish(base, woken ? { ...outcome, wakes: [] } : outcome);
        if (ofKey.isSettled(batch, commands)) return;
        tries = 0;
        continue;
      }
      if (certain) races += 1;
      if (areReleases(commands) && ofKey.joinAfterRace(batch, outcome.urgent)) return;
      const pauseMs = pauseMsOf(attempt(), outcome.urgent, commands, base.state, this.#clock.random());
      if (pauseMs > 0) {
        ofKey.onAnswer(batch, this.#callTime.ms, pauseMs);
        await new Promise<void>((resolve) => {
          this.#clock.timer(pauseMs, resolve);
        });
      }
      // A record found before a pause is probably outdated after it.
      base = (pauseMs > 0 ? null : written.found) ?? (await heard(this.#readAfterRace(key)));
      certain = true;
      // The client sent the write twice, and the first one had been executed (F4).
      const isTimely = this.#time.jumps === jumps;
      if (register.repeats && isTimely && isSame(base.state, next, taken !== null)) {
        finish(base, outcome);
        if (ofKey.isSettled(batch, commands)) return;
      }
    }
    throw tooManyRaces(key);
  }

  /**
   * The record after a write that came back `changed`. If the client may have sent the write twice, the first may have
   * been executed until a read shows another record. An `UnsupportedError` without a cause is about a record that was
   * read: another one.
   */
  async #readAfterRace(key: string): Promise<Found<V>> {
    try {
      return await this.#register.read(key);
    } catch (error) {
      const saysNothingChanged =
        error instanceof NotExecutedError ||
        (error instanceof UnsupportedError && (error.cause !== undefined || this.#closed));
      if (!this.#register.repeats || !saysNothingChanged) throw error;
      const message = `Whether "${key}" was changed is not known, because it could not be read: ${error.message}`;
      throw new Error(message, { cause: error });
    }
  }

  /** Null when the store has to be asked first: only a fresh reading lets a claim replace an expired holder. */
  #readingFor({ state, lateMs }: Found<V>): Reading | null {
    const reading = this.#time.reading();
    if (!reading || !state) return reading;
    const earliest = reading.earliest - lateMs;
    const takesOver = state.holders.some(({ expiresAt }) => expiresAt <= earliest);
    return takesOver && !this.#time.isFresh() ? null : reading;
  }

  async #sampled(): Promise<Reading> {
    // A reply during which this machine slept, or its clock was set, is no sample.
    for (let tries = 0; tries < SAMPLES_MAX; tries++) {
      await this.#sample.run();
      const reading = this.#time.reading();
      if (reading) return reading;
    }
    throw new Error(`The time of the ${this.#name} store is not known: this machine's clock was just set.`);
  }
}
