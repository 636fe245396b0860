/**
 * Makes a store of any engine that can say "replace this record if it is still the one I saw, and tell me what is
 * there". Decides here, by `decide`, and writes what came out on that condition; when something else was there, decides
 * again on that. So the record changes only by decisions on what it really was.
 *
 * The first write is a guess, on what this process last saw of the key: right whenever nobody else was there since,
 * and then an operation is one call. What a guess says without writing (busy, lost) is never believed: it is read first.
 * A rejection means that a write may or may not have come through; then nothing is remembered of the key.
 */
import { type Clock, systemClock } from '../../clock.js';
import {
  type Command,
  type Reply,
  type Snapshot,
  type State,
  snapshotOf,
  UnsupportedError,
} from '../../protocol/index.js';
import { backoffAfter, isCrowded, pauseMsMax, type Trial } from './crowd.js';
import { Desk } from './desk.js';
import {
  decideAll,
  type Errand,
  isAnswered,
  isGivenUp,
  loneClaim,
  type Outcome,
  telling,
} from './errands.js';
import { Question } from './question.js';
import type { Found, Reading, Register, StoreTime } from './register.js';
import { Remembered } from './remembered.js';

export interface CompareAndSwapOptions {
  /** The store's name, for messages. */
  readonly name: string;
  /** Whether claims may stand in line. */
  readonly queue: boolean;
  readonly clock?: Clock;
}

/** Others got in between so often: then the outcome is called unknown, and the core asks again. */
const TRIES_MAX = 24;
/** Of how many keys the last record seen is remembered: the guess. */
const REMEMBERED_MAX = 50_000;
/** An older guess is likely to fail where many wait. Waiters then read first, and so does everybody in a crowd. */
const FRESH_MS = 100;

interface Seen<V> {
  readonly found: Found<V>;
  readonly atMs: number;
  /** See `Trial`. */
  readonly backoff: number;
}

export class CompareAndSwap<V> {
  readonly #register: Register<V>;
  readonly #time: StoreTime;
  readonly #name: string;
  readonly #queue: boolean;
  readonly #clock: Clock;
  readonly #remembered = new Remembered<Seen<V>>(REMEMBERED_MAX);
  readonly #sample: Question<void>;
  readonly #desks = new Map<string, Desk>();
  #closed = false;

  constructor(register: Register<V>, time: StoreTime, options: CompareAndSwapOptions) {
    this.#register = register;
    this.#time = time;
    this.#name = options.name;
    this.#queue = options.queue;
    this.#clock = options.clock ?? systemClock;
    this.#sample = new Question(() => time.sample(), this.#clock);
  }

  apply(commands: readonly Command[]): readonly Promise<Reply>[] {
    const byKey = new Map<string, Errand[]>();
    const replies = commands.map(
      (command) =>
        new Promise<Reply>((resolve, reject) => {
          const said = command.kind === 'claim' && !this.#queue ? { ...command, queue: false } : command;
          const errands = byKey.get(command.key);
          if (errands) errands.push({ command: said, resolve, reject });
          else byKey.set(command.key, [{ command: said, resolve, reject }]);
        }),
    );
    for (const [key, errands] of byKey) this.#start(key, errands);
    return replies;
  }

  async read(key: string): Promise<Snapshot | null> {
    this.#checkOpen();
    const { state, lateMs } = await this.#register.read(key);
    const { earliest } = await this.#reading();
    return snapshotOf(key, state, earliest - lateMs);
  }

  /** The time now; asks for it where nothing is known. */
  async now(): Promise<Reading> {
    this.#checkOpen();
    return await this.#reading();
  }

  /** What was seen may have been of another engine than the one that answers now: the same version, another record. */
  forget(): void {
    this.#remembered.clear();
  }

  close(): void {
    this.#closed = true;
    this.forget();
  }

  #checkOpen(): void {
    if (this.#closed) throw new UnsupportedError(`This ${this.#name} store is closed.`);
  }

  #start(key: string, all: readonly Errand[]): void {
    const desk = this.#desks.get(key) ?? new Desk(this.#clock);
    const errands = all.filter((errand) => this.#admit(errand)).map((errand) => telling(errand, desk));
    if (errands.length === 0) return;
    this.#desks.set(key, desk);
    const place = desk.come(errands.map(({ command }) => command));
    const work = (): Promise<void> => this.#settle(key, errands, desk, place);
    const claims = errands.every(({ command }) => command.kind === 'claim');
    const done = (): void => {
      desk.busy -= 1;
      if (desk.busy === 0) this.#desks.delete(key);
    };
    (claims ? desk.inTurn(work) : work()).then(done, (error: unknown) => {
      done();
      this.#remembered.delete(key);
      for (const { reject } of errands) reject(error);
    });
  }

  #admit({ command, reject }: Errand): boolean {
    try {
      this.#checkOpen();
      this.#register.check?.(command);
      return true;
    } catch (error) {
      reject(error);
      return false;
    }
  }

  async #settle(key: string, all: readonly Errand[], desk: Desk, place: number): Promise<void> {
    const register = this.#register;
    let errands = all.filter((errand) => !isAnswered(errand, desk, place));
    if (errands.length === 0) return;
    const seen = this.#remembered.get(key);
    const sinceMs = this.#clock.monotonicMs();
    const isFresh = seen !== undefined && sinceMs - seen.atMs < FRESH_MS;
    const isGuessed = seen
      ? isFresh || !isCrowded(seen.found.state)
      : errands.some(({ command }) => command.kind === 'claim');
    let certain = !isGuessed;
    let base = isGuessed ? (seen?.found ?? register.absent) : await register.read(key);
    const backoff = seen?.backoff ?? 0;
    const draw = this.#clock.random();
    let races = 0;
    const trial = (): Trial => ({ races, backoff, draw, tookMs: this.#clock.monotonicMs() - sinceMs });
    const finish = (found: Found<V>, outcome: Outcome): void => {
      const atMs = this.#clock.monotonicMs();
      this.#finish(key, { found, atMs, backoff: backoffAfter(trial(), outcome.changed) }, outcome);
    };
    for (let tries = 1; tries <= TRIES_MAX; tries++) {
      errands = errands.filter((errand) => !isGivenUp(errand, desk, place));
      if (errands.length === 0) return;
      const reading = this.#readingFor(base) ?? (await this.#asked());
      const { jumps } = this.#time;
      const outcome = decideAll(base, errands, reading, trial());
      const next = outcome.changed ? outcome.state : null;
      if (next === null && certain) return finish(base, outcome);
      if (next === null || !(certain || outcome.decisive || isFresh)) {
        base = await register.read(key);
        certain = true;
        continue;
      }
      // Where nobody was seen on the key, the engine may be able to do better than to replace what was seen.
      const taken = register.take && !certain && isFree(base.state) ? loneClaim(errands) : null;
      const written = await (taken && register.take
        ? register.take(taken, next, reading.latest)
        : register.write(key, next, base, reading.latest));
      if (written.kind === 'written') {
        if (this.#time.jumps !== jumps && next.holders.length > 0) throw jumpedError(this.#name, key);
        const { version, lateMs, state = next } = written;
        return finish({ version, lateMs, state }, outcome);
      }
      if (certain) races += 1;
      const pauseMs = pauseMsMax(trial(), outcome.urgent);
      if (pauseMs > 0) await this.#pause(pauseMs);
      // The record found before a pause is likely to be an old one after it.
      base = (pauseMs > 0 ? null : written.found) ?? (await register.read(key));
      certain = true;
      // The client sent it twice, and the first time had come through (F4).
      const isTimely = this.#time.jumps === jumps;
      if (register.repeats && isTimely && isSame(base.state, next, taken !== null)) {
        return finish(base, outcome);
      }
    }
    throw new Error(
      `Others changed the record of "${key}" ${TRIES_MAX} times in a row between this process's looks at it.`,
    );
  }

  #finish(key: string, seen: Seen<V>, { wakes, answers }: Outcome): void {
    if (!this.#closed) this.#remembered.set(key, seen);
    for (const answer of answers) answer();
    if (wakes.length > 0) this.#register.wake?.(key, wakes);
  }

  /** Null when the store has to be asked first: nobody is taken over from by a time that was told long ago. */
  #readingFor({ state, lateMs }: Found<V>): Reading | null {
    const reading = this.#time.reading();
    if (!reading || !state) return reading;
    const earliest = reading.earliest - lateMs;
    const takesOver = state.holders.some(({ expiresAt }) => expiresAt <= earliest);
    return takesOver && !this.#time.isFresh() ? null : reading;
  }

  async #reading(): Promise<Reading> {
    return this.#time.reading() ?? (await this.#asked());
  }

  async #asked(): Promise<Reading> {
    await this.#sample.put();
    const reading = this.#time.reading();
    if (reading) return reading;
    throw new Error(`The time of the ${this.#name} store is not known: this machine's clock was just set.`);
  }

  #pause(msMax: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.timer(this.#clock.random() * msMax, resolve);
    });
  }
}

/** Its holder would count a whole ttl from now, and everybody else from a time that was long ago. */
function jumpedError(name: string, key: string): Error {
  return new Error(
    `While the record of "${key}" was written, the ${name} store told another time than before: ` +
      'this machine or a clock of the store stood still. What was decided goes by the old one.',
  );
}

function isFree(state: State | null): boolean {
  return (
    state === null || (state.holders.length === 0 && state.rests.length === 0 && state.waiters.length === 0)
  );
}

/** Two commands decided in one millisecond have the same number: the marks tell them apart, but for those `take` kept. */
function isSame(there: State | null, written: State, taken: boolean): boolean {
  if (there?.decision !== written.decision || there.token !== written.token) return false;
  if (bodyOf(there) !== bodyOf(written)) return false;
  return taken || JSON.stringify(there.ended) === JSON.stringify(written.ended);
}

function bodyOf({ holders, rests, waiters }: State): string {
  return JSON.stringify([holders, rests, waiters]);
}
