/** Events of the service, for metrics and watchers. They never contain a hold. */

export interface ServiceEventDetails {
  /** A request was answered. */
  readonly request: {
    readonly method: string;
    /** The pattern, not the path, which would contain the key. */
    readonly route: string;
    readonly status: number;
    readonly outcome: string;
    readonly durationMs: number;
  };
  /** A call of the store ended. */
  readonly store: {
    readonly operation: 'apply' | 'read' | 'list' | 'probe';
    readonly commands: number;
    readonly durationMs: number;
    readonly ok: boolean;
  };
  /** A lock was granted. */
  readonly acquired: { readonly key: string; readonly waitedMs: number; readonly token?: number };
  /** A caller found the lock held by others. */
  readonly contended: { readonly key: string };
  /** An acquire ended without the lock. */
  readonly refused: { readonly key: string; readonly waitedMs: number };
  /** A holder released its lock. `held` is false if it was lost before. */
  readonly released: { readonly key: string; readonly held: boolean };
  /** A holder that renewed its lock found that it had ended. */
  readonly lost: { readonly key: string };
  /** An operator evicted holders. `count` is null when the store did not answer, so the outcome is unknown. */
  readonly evicted: {
    readonly key: string;
    readonly count: number | null;
    readonly principal: string;
    readonly requestId: string;
    /** The range of tokens to end. */
    readonly fromToken: number;
    readonly upToToken: number;
    readonly reason: string | null;
  };
  /** Lines of the log could not be written. */
  readonly dropped: { readonly lines: number };
  /** A request through this process may have changed the holders or waiters of a key. */
  readonly touched: { readonly key: string };
}

export type ServiceEventName = keyof ServiceEventDetails;
type Listener<N extends ServiceEventName> = (detail: ServiceEventDetails[N]) => void;

export class ServiceEvents {
  readonly #listeners = new Map<ServiceEventName, Set<Listener<never>>>();

  /** Returns a function that unsubscribes. */
  on<N extends ServiceEventName>(name: N, listener: Listener<N>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener as Listener<never>));
    return () => {
      listeners.delete(listener as Listener<never>);
    };
  }

  emit<N extends ServiceEventName>(name: N, detail: ServiceEventDetails[N]): void {
    const listeners = this.#listeners.get(name);
    if (!listeners) return;
    for (const listener of listeners) (listener as Listener<N>)(detail);
  }
}
