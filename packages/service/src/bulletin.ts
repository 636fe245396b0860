/** What happens in the service, told to those who count or watch it. Never with a hold. */

export interface Happenings {
  /** A request was answered. */
  readonly request: {
    readonly method: string;
    /** The pattern, not the path: it names no key. */
    readonly route: string;
    readonly status: number;
    readonly outcome: string;
    readonly durationMs: number;
  };
  /** The store was asked something. */
  readonly store: {
    readonly operation: 'apply' | 'read' | 'list' | 'probe';
    readonly commands: number;
    readonly durationMs: number;
    readonly ok: boolean;
  };
  /** A lock was granted, after so long. */
  readonly acquired: { readonly key: string; readonly waitedMs: number };
  /** Somebody found a lock taken. */
  readonly contended: { readonly key: string };
  /** Somebody gave up, or was told that the lock is not free. */
  readonly refused: { readonly key: string; readonly waitedMs: number };
  /** A lock was given back by its holder, or found lost by it. */
  readonly released: { readonly key: string; readonly held: boolean };
  readonly lost: { readonly key: string };
  /** By an operator. `count` is null when the store did not answer: then nobody knows. */
  readonly evicted: {
    readonly key: string;
    readonly count: number | null;
    readonly principal: string;
    readonly requestId: string;
  };
  /** The holders or waiters of a key may have changed, by what went through this process. */
  readonly touched: { readonly key: string };
}

export type Happening = keyof Happenings;
type Listener<N extends Happening> = (what: Happenings[N]) => void;

export class Bulletin {
  readonly #listeners = new Map<Happening, Set<Listener<never>>>();

  /** Returns a function that ends it. */
  on<N extends Happening>(name: N, listener: Listener<N>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener as Listener<never>));
    return () => {
      listeners.delete(listener as Listener<never>);
    };
  }

  tell<N extends Happening>(name: N, what: Happenings[N]): void {
    const listeners = this.#listeners.get(name);
    if (!listeners) return;
    for (const listener of listeners) (listener as Listener<N>)(what);
  }
}
