/**
 * Changes among the keys with one prefix, for all their watchers: one read of the store serves all. Keys that requests of
 * this process touched are read within moments; changes by others are seen in the next round, which lists all keys page by
 * page. A lock that comes and goes between two reads is not seen.
 */
import type { Snapshot } from 'holdfast/protocol';
import { after, type Cancel } from '../clock.js';
import type { ServiceParts } from '../http/service-parts.js';
import { type ReadResult, ReadScheduler } from './read-scheduler.js';
import { type ChangeKind, SerialisedLock } from './stream-queue.js';
import { type LockView, lockView } from './views.js';

export interface Watcher {
  onChange(kind: ChangeKind, lock: SerialisedLock): void;
  /** All known locks were passed to `onChange`. */
  onReady(): void;
  /** The store does not answer, so the last state may be outdated. `onReady` follows when it answers again. */
  onTrouble(): void;
}

/** Shared by all watches. */
export interface WatchSchedulers {
  /** Rounds through the keys. */
  readonly pages: ReadScheduler;
  /** Keys that this process touched, which do not wait for a round. */
  readonly touched: ReadScheduler;
}

interface Known {
  readonly view: LockView;
  readonly outline: string;
  readonly expiries: string;
  /** The last round in which the key was listed. */
  readonly round: number;
}

/** The longest pause after a failed round, so that watchers see soon that the store is back. */
const RETRY_MS_MAX = 5_000;
/** Keys per page: many, because some stores read all their keys for every page. */
const PAGE = 10_000;
/** Keys beyond these are not watched. */
const WATCHED_MAX = 100_000;
const MISSING_MAX = 1_000;
const TOUCHED_MS = 20;
/** How many touched keys are read together. */
const TOUCHED_STEP = 64;
/** The most touched keys that wait. Others are seen in the next round. */
const TOUCHED_MAX = 1_000;

export class Watch {
  readonly #parts: ServiceParts;
  readonly #prefix: string;
  readonly #schedulers: WatchSchedulers;
  readonly #watchers = new Set<Watcher>();
  readonly #known = new Map<string, Known>();
  readonly #touched = new Set<string>();
  readonly #stopTouched: () => void;
  #cancelPage: Cancel = () => undefined;
  #cancelTouched: Cancel | null = null;
  /** The last read. One at a time, so that an older result never follows a newer one. */
  #work = Promise.resolve<ReadResult>('first');
  #state: 'new' | 'ready' | 'trouble' | 'over' = 'new';
  #round = 0;
  /** Keys listed in this round. */
  #listed = 0;
  #last: string | undefined;

  /** Starts reading, until the last watcher leaves. */
  constructor(parts: ServiceParts, prefix: string, schedulers: WatchSchedulers) {
    this.#parts = parts;
    this.#prefix = prefix;
    this.#schedulers = schedulers;
    this.#stopTouched = parts.events.on('touched', ({ key }) => this.#touch(key));
    this.#armPage(0);
  }

  get isOver(): boolean {
    return this.#state === 'over';
  }

  /** Returns a function that removes the watcher. */
  add(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    for (const { view } of this.#known.values()) watcher.onChange('appeared', new SerialisedLock(view));
    if (this.#state === 'ready') watcher.onReady();
    if (this.#state === 'trouble') watcher.onTrouble();
    return () => {
      if (this.#watchers.delete(watcher) && this.#watchers.size === 0) this.#stop();
    };
  }

  #stop(): void {
    this.#state = 'over';
    this.#stopTouched();
    this.#cancelPage();
    this.#cancelTouched?.();
  }

  #alone(work: () => Promise<void>): Promise<ReadResult> {
    this.#work = this.#work.then(async () => {
      try {
        if (!this.isOver) await work();
        return this.#state === 'new' ? 'first' : 'answered';
      } catch (error) {
        this.#emitTrouble(error);
        return 'failed';
      }
    });
    return this.#work;
  }

  #touch(key: string): void {
    if (!key.startsWith(this.#prefix) || this.#touched.size === TOUCHED_MAX) return;
    this.#touched.add(key);
    this.#armTouched();
  }

  #armTouched(): void {
    if (this.#touched.size === 0 || this.#state !== 'ready') return;
    this.#cancelTouched ??= after(TOUCHED_MS, () => {
      this.#cancelTouched = this.#schedulers.touched.schedule(() => this.#alone(() => this.#readTouched()));
    });
  }

  async #readTouched(): Promise<void> {
    this.#cancelTouched = null;
    const keys = [...this.#touched].slice(0, TOUCHED_STEP);
    for (const key of keys) this.#touched.delete(key);
    await Promise.all(keys.map((key) => this.#read(key)));
    this.#armTouched();
  }

  #armPage(delayMs: number): void {
    this.#cancelPage = after(delayMs, () => {
      this.#cancelPage = this.#schedulers.pages.schedule(() => this.#alone(() => this.#readPage()));
    });
  }

  async #readPage(): Promise<void> {
    let count = 0;
    let isRoundOver = true;
    let pauseMs = Math.min(this.#parts.intervals.roundMs, RETRY_MS_MAX);
    try {
      const query = { prefix: this.#prefix, limit: PAGE };
      const from = this.#last === undefined ? query : { ...query, after: this.#last };
      await this.#parts.client.eachReadable(from, (snapshot) => {
        count += 1;
        this.#last = snapshot.key;
        this.#update(snapshot.key, snapshot);
        return count < PAGE && !this.isOver;
      });
      this.#listed += count;
      isRoundOver = count < PAGE || this.#listed >= WATCHED_MAX;
      if (isRoundOver) await this.#readMissing(count < PAGE);
      pauseMs = this.#parts.intervals.roundMs;
    } finally {
      if (isRoundOver) {
        this.#round += 1;
        this.#listed = 0;
        this.#last = undefined;
      }
      if (!this.isOver) this.#armPage(isRoundOver ? pauseMs : 0);
    }
    if (isRoundOver) this.#emitReady();
  }

  async #readMissing(isWhole: boolean): Promise<void> {
    const missing = [...this.#known].filter(([, { round }]) => round !== this.#round).map(([key]) => key);
    // A round that was cut off does not show the keys after that point, so missing keys may still exist.
    if (isWhole) for (const key of missing) this.#update(key, null);
    else await Promise.all(missing.slice(0, MISSING_MAX).map((key) => this.#read(key)));
  }

  async #read(key: string): Promise<void> {
    this.#update(key, await this.#parts.client.read(key));
  }

  #update(key: string, snapshot: Snapshot | null): void {
    const { history, queues } = this.#parts;
    const before = this.#known.get(key);
    if (!snapshot) {
      this.#known.delete(key);
      history.observed(key, before?.view, null);
      if (before) this.#emit('gone', { ...before.view, holders: [], holding: 0, waiters: [], waiting: 0 });
      return;
    }
    if (!before && this.#known.size >= WATCHED_MAX) return;
    const next = outlined(lockView(snapshot, queues.waitersHere(key), 'text'), this.#round);
    this.#known.set(key, next);
    history.observed(key, before?.view, next.view);
    if (!before) this.#emit('appeared', next.view);
    else if (before.outline !== next.outline) this.#emit('changed', next.view);
    else if (before.expiries !== next.expiries) this.#emit('renewed', next.view);
  }

  #emit(kind: ChangeKind, view: LockView): void {
    const lock = new SerialisedLock(view);
    for (const watcher of this.#watchers) watcher.onChange(kind, lock);
  }

  #emitReady(): void {
    if (this.isOver || this.#state === 'ready') return;
    this.#state = 'ready';
    for (const watcher of this.#watchers) watcher.onReady();
    this.#armTouched();
  }

  #emitTrouble(error: unknown): void {
    this.#parts.log.warn({ error: String(error) }, 'watch: the store did not answer');
    if (this.isOver || this.#state === 'trouble') return;
    this.#state = 'trouble';
    for (const watcher of this.#watchers) watcher.onTrouble();
  }
}

/** Holders and waiters without expiries: a renewal is a different kind of change. */
function outlined(view: LockView, round: number): Known {
  const { holders, holding, waiters, waiting } = view;
  const outline = JSON.stringify([
    holders.map(({ owner, token, resting }) => [owner, token, resting]),
    holding,
    waiters.map(({ owner, since }) => [owner, since]),
    waiting,
  ]);
  return { view, outline, expiries: holders.map(({ expiresAt }) => expiresAt).join(), round };
}

/** One watch per prefix, shared by all its watchers: created for the first, ended with the last. */
export class Watches {
  readonly #parts: ServiceParts;
  readonly #schedulers: WatchSchedulers = { pages: new ReadScheduler(), touched: new ReadScheduler() };
  readonly #watches = new Map<string, Watch>();

  constructor(parts: ServiceParts) {
    this.#parts = parts;
  }

  /** Returns a function that leaves the watch. */
  join(prefix: string, watcher: Watcher): () => void {
    const watch = this.#watches.get(prefix) ?? new Watch(this.#parts, prefix, this.#schedulers);
    this.#watches.set(prefix, watch);
    const leave = watch.add(watcher);
    return () => {
      leave();
      if (watch.isOver && this.#watches.get(prefix) === watch) this.#watches.delete(prefix);
    };
  }
}
