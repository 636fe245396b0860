/**
 * What changes, for all who watch: one look at the store serves them all, and nobody looks while nobody watches. Keys
 * that went through this process are looked at within moments; what others did is seen by the next look at everything.
 * What comes and goes between two looks is not seen.
 */
import type { Snapshot } from 'holdfast/protocol';
import { after, type Cancel, monotonicMs } from '../clock.js';
import type { ServiceParts } from '../http/service-parts.js';
import { type LockView, lockView } from './views.js';

export type ChangeKind = 'appeared' | 'changed' | 'renewed' | 'gone';

export interface Watcher {
  onChange(kind: ChangeKind, lock: LockView): void;
  /** All that is known has been told. */
  onReady(): void;
  /** The store does not answer: what was told may no longer be so. Ready again when it does. */
  onTrouble(): void;
}

interface Known {
  readonly view: LockView;
  readonly outline: string;
  readonly expiries: string;
}

const LOOK_MS = 1_000;
const TOUCHED_MS = 20;
/** More at once are seen by a look at everything. */
const TOUCHED_MAX = 64;
/** Keys beyond these are not watched. */
const WATCHED_MAX = 10_000;
const MISSING_MAX = 1_000;

export class Watch {
  readonly #parts: ServiceParts;
  readonly #watchers = new Set<Watcher>();
  #known = new Map<string, Known>();
  #touched = new Set<string>();
  #stopTouched: () => void = () => undefined;
  #cancel: Cancel | null = null;
  #looking = false;
  /** When everything has to be looked at again. */
  #allDueMs = 0;
  #state: 'new' | 'ready' | 'trouble' = 'new';

  constructor(parts: ServiceParts) {
    this.#parts = parts;
  }

  /** Returns a function that ends it. */
  add(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    if (this.#watchers.size === 1) this.#start();
    else if (this.#state !== 'new') {
      for (const { view } of this.#known.values()) watcher.onChange('appeared', view);
      if (this.#state === 'ready') watcher.onReady();
      else watcher.onTrouble();
    }
    return () => {
      if (this.#watchers.delete(watcher) && this.#watchers.size === 0) this.#stop();
    };
  }

  #start(): void {
    this.#stopTouched = this.#parts.bulletin.on('touched', ({ key }) => {
      this.#touched.add(key);
      if (!this.#looking && this.#state === 'ready') this.#schedule(TOUCHED_MS);
    });
    this.#allDueMs = 0;
    this.#schedule(0);
  }

  #stop(): void {
    this.#stopTouched();
    this.#cancel?.();
    this.#cancel = null;
    this.#known = new Map();
    this.#touched = new Set();
    this.#state = 'new';
  }

  /** Sooner than already arranged, never later. */
  #schedule(delayMs: number): void {
    const dueMs = Math.max(0, Math.min(delayMs, this.#allDueMs - monotonicMs()));
    this.#cancel?.();
    this.#cancel = after(dueMs, () => void this.#look());
  }

  async #look(): Promise<void> {
    // The look of those who left may still be on its way.
    if (this.#looking) return;
    this.#looking = true;
    const sinceMs = monotonicMs();
    const everything = sinceMs >= this.#allDueMs || this.#touched.size > TOUCHED_MAX;
    const touched = [...this.#touched];
    this.#touched = new Set();
    const known = this.#known;
    try {
      if (everything) await this.#lookAtAll(known);
      else await Promise.all(touched.map((key) => this.#lookAt(known, key)));
      if (this.#state !== 'ready' && known === this.#known) this.#tellReady();
    } catch (error) {
      this.#tellTrouble(error);
    }
    this.#looking = false;
    // A look that is slow is not to be all that the store does.
    if (everything) this.#allDueMs = monotonicMs() + Math.max(LOOK_MS, 4 * (monotonicMs() - sinceMs));
    if (known !== this.#known) this.#allDueMs = 0;
    if (this.#watchers.size > 0) this.#schedule(this.#touched.size > 0 ? TOUCHED_MS : LOOK_MS);
  }

  async #lookAtAll(known: Map<string, Known>): Promise<void> {
    const found = await this.#parts.desk.list({ prefix: '', limit: WATCHED_MAX });
    const keys = new Set(found.map(({ key }) => key));
    for (const snapshot of found) this.#see(known, snapshot.key, snapshot);
    const missing = [...known.keys()].filter((key) => !keys.has(key));
    // A listing that is full says nothing of what is not in it: others may have so many locks on purpose.
    if (found.length < WATCHED_MAX) for (const key of missing) this.#see(known, key, null);
    else await Promise.all(missing.slice(0, MISSING_MAX).map((key) => this.#lookAt(known, key)));
  }

  async #lookAt(known: Map<string, Known>, key: string): Promise<void> {
    this.#see(known, key, await this.#parts.desk.read(key));
  }

  #see(known: Map<string, Known>, key: string, snapshot: Snapshot | null): void {
    const before = known.get(key);
    if (!snapshot) {
      known.delete(key);
      if (before) this.#tell('gone', { ...before.view, holders: [], waiters: [], waiting: 0 });
      return;
    }
    const next = outlined(lockView(snapshot, this.#parts.lines.waitersBehind(key), 'json'));
    known.set(key, next);
    if (!before) this.#tell('appeared', next.view);
    else if (before.outline !== next.outline) this.#tell('changed', next.view);
    else if (before.expiries !== next.expiries) this.#tell('renewed', next.view);
  }

  #tell(kind: ChangeKind, lock: LockView): void {
    for (const watcher of this.#watchers) watcher.onChange(kind, lock);
  }

  #tellReady(): void {
    this.#state = 'ready';
    for (const watcher of this.#watchers) watcher.onReady();
  }

  #tellTrouble(error: unknown): void {
    this.#parts.log.warn({ error: String(error) }, 'watching: the store did not answer');
    this.#allDueMs = 0;
    if (this.#state === 'trouble') return;
    this.#state = 'trouble';
    for (const watcher of this.#watchers) watcher.onTrouble();
  }
}

/** Who holds and who waits; when that ends is told apart from it. */
function outlined(view: LockView): Known {
  const { holders, waiters, waiting } = view;
  const outline = JSON.stringify([
    holders.map(({ owner, token, resting }) => [owner, token, resting]),
    waiters.map(({ owner, since }) => [owner, since]),
    waiting,
  ]);
  return { view, outline, expiries: holders.map(({ expiresAt }) => expiresAt).join() };
}
