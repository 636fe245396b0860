/**
 * What changes among the keys that begin alike, for all who watch them: one look at the store serves them all. Keys
 * that went through this process are looked at within moments; what others did is seen by the next round, which goes
 * through all of them, a page at a time. What comes and goes between two looks is not seen.
 */
import type { Snapshot } from 'holdfast/protocol';
import { after, type Cancel } from '../clock.js';
import type { ServiceParts } from '../http/service-parts.js';
import { type ChangeKind, ToldLock } from './told-lock.js';
import type { Turns } from './turns.js';
import { type LockView, lockView } from './views.js';

export interface Watcher {
  onChange(kind: ChangeKind, lock: ToldLock): void;
  /** All that is known has been told. */
  onReady(): void;
  /** The store does not answer: what was told may no longer be so. Ready again when it does. */
  onTrouble(): void;
}

/** Of all watches together. */
export interface WatchTurns {
  /** Rounds through the keys. */
  readonly pages: Turns;
  /** Keys that went through this process: these do not wait behind a round. */
  readonly touched: Turns;
}

interface Known {
  readonly view: LockView;
  readonly outline: string;
  readonly expiries: string;
  /** The last in which it was there. */
  readonly round: number;
}

/** After a round that failed, the next one comes no later than this: watchers are to know soon that the store is back. */
const RETRY_MS_MAX = 5_000;
/** Large, as there are stores that go through all their keys for every page. */
const PAGE = 10_000;
/** Keys beyond these are not watched. */
const WATCHED_MAX = 100_000;
const MISSING_MAX = 1_000;
const TOUCHED_MS = 20;
/** So many at once. */
const TOUCHED_STEP = 64;
/** More are left to the next round. */
const TOUCHED_MAX = 1_000;

export class Watch {
  readonly #parts: ServiceParts;
  readonly #prefix: string;
  readonly #turns: WatchTurns;
  readonly #watchers = new Set<Watcher>();
  readonly #known = new Map<string, Known>();
  readonly #touched = new Set<string>();
  readonly #stopTouched: () => void;
  #cancelPage: Cancel = () => undefined;
  #cancelTouched: Cancel | null = null;
  /** The last work at the store: what was read earlier is not to be taken for news. */
  #work = Promise.resolve(true);
  #state: 'new' | 'ready' | 'trouble' | 'over' = 'new';
  #round = 0;
  /** How far this round has come. */
  #listed = 0;
  #last: string | undefined;

  /** Looks from now on, until the last watcher leaves. */
  constructor(parts: ServiceParts, prefix: string, turns: WatchTurns) {
    this.#parts = parts;
    this.#prefix = prefix;
    this.#turns = turns;
    this.#stopTouched = parts.bulletin.on('touched', ({ key }) => this.#touch(key));
    this.#arrangePage(0);
  }

  get isOver(): boolean {
    return this.#state === 'over';
  }

  /** Returns a function that ends it. */
  add(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    for (const { view } of this.#known.values()) watcher.onChange('appeared', new ToldLock(view));
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

  /** Whether the store answered. */
  #alone(work: () => Promise<void>): Promise<boolean> {
    this.#work = this.#work.then(async () => {
      try {
        if (!this.isOver) await work();
        return true;
      } catch (error) {
        this.#tellTrouble(error);
        return false;
      }
    });
    return this.#work;
  }

  #touch(key: string): void {
    if (!key.startsWith(this.#prefix) || this.#touched.size === TOUCHED_MAX) return;
    this.#touched.add(key);
    this.#arrangeTouched();
  }

  #arrangeTouched(): void {
    if (this.#touched.size === 0 || this.#state !== 'ready') return;
    this.#cancelTouched ??= after(TOUCHED_MS, () => {
      this.#cancelTouched = this.#turns.touched.ask(() => this.#alone(() => this.#lookAtTouched()));
    });
  }

  async #lookAtTouched(): Promise<void> {
    this.#cancelTouched = null;
    const keys = [...this.#touched].slice(0, TOUCHED_STEP);
    for (const key of keys) this.#touched.delete(key);
    await Promise.all(keys.map((key) => this.#lookAt(key)));
    this.#arrangeTouched();
  }

  #arrangePage(delayMs: number): void {
    this.#cancelPage = after(delayMs, () => {
      this.#cancelPage = this.#turns.pages.ask(() => this.#alone(() => this.#lookAtPage()));
    });
  }

  async #lookAtPage(): Promise<void> {
    let count = 0;
    let isRoundOver = true;
    let pauseMs = Math.min(this.#parts.pace.roundMs, RETRY_MS_MAX);
    try {
      const query = { prefix: this.#prefix, limit: PAGE };
      const from = this.#last === undefined ? query : { ...query, after: this.#last };
      await this.#parts.desk.each(from, (snapshot) => {
        count += 1;
        this.#last = snapshot.key;
        this.#see(snapshot.key, snapshot);
        return count < PAGE && !this.isOver;
      });
      this.#listed += count;
      isRoundOver = count < PAGE || this.#listed >= WATCHED_MAX;
      if (isRoundOver) await this.#lookForMissing(count < PAGE);
      pauseMs = this.#parts.pace.roundMs;
    } finally {
      if (isRoundOver) {
        this.#round += 1;
        this.#listed = 0;
        this.#last = undefined;
      }
      if (!this.isOver) this.#arrangePage(isRoundOver ? pauseMs : 0);
    }
    if (isRoundOver) this.#tellReady();
  }

  async #lookForMissing(isWhole: boolean): Promise<void> {
    const missing = [...this.#known].filter(([, { round }]) => round !== this.#round).map(([key]) => key);
    // A round that was cut short says nothing of what is behind it: others may have so many locks on purpose.
    if (isWhole) for (const key of missing) this.#see(key, null);
    else await Promise.all(missing.slice(0, MISSING_MAX).map((key) => this.#lookAt(key)));
  }

  async #lookAt(key: string): Promise<void> {
    this.#see(key, await this.#parts.desk.read(key));
  }

  #see(key: string, snapshot: Snapshot | null): void {
    const before = this.#known.get(key);
    if (!snapshot) {
      this.#known.delete(key);
      if (before) this.#tell('gone', { ...before.view, holders: [], holding: 0, waiters: [], waiting: 0 });
      return;
    }
    if (!before && this.#known.size >= WATCHED_MAX) return;
    const next = outlined(lockView(snapshot, this.#parts.lines.waitersHere(key), 'text'), this.#round);
    this.#known.set(key, next);
    if (!before) this.#tell('appeared', next.view);
    else if (before.outline !== next.outline) this.#tell('changed', next.view);
    else if (before.expiries !== next.expiries) this.#tell('renewed', next.view);
  }

  #tell(kind: ChangeKind, view: LockView): void {
    const lock = new ToldLock(view);
    for (const watcher of this.#watchers) watcher.onChange(kind, lock);
  }

  #tellReady(): void {
    if (this.isOver || this.#state === 'ready') return;
    this.#state = 'ready';
    for (const watcher of this.#watchers) watcher.onReady();
    this.#arrangeTouched();
  }

  #tellTrouble(error: unknown): void {
    this.#parts.log.warn({ error: String(error) }, 'watching: the store did not answer');
    if (this.isOver || this.#state === 'trouble') return;
    this.#state = 'trouble';
    for (const watcher of this.#watchers) watcher.onTrouble();
  }
}

/** Who holds and who waits; when that ends is told apart from it. */
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
