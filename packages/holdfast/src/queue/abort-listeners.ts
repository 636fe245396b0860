/** One listener per signal, because many callers may wait with one signal. */

interface Abortable {
  onAbort(): void;
}

export class AbortListeners {
  readonly #bySignal = new Map<
    AbortSignal,
    { readonly all: Set<Abortable>; readonly listener: () => void }
  >();

  add(signal: AbortSignal, waiter: Abortable): void {
    const known = this.#bySignal.get(signal);
    if (known) {
      known.all.add(waiter);
      return;
    }
    const all = new Set([waiter]);
    const listener = (): void => {
      for (const each of [...all]) each.onAbort();
    };
    signal.addEventListener('abort', listener);
    this.#bySignal.set(signal, { all, listener });
  }

  remove(signal: AbortSignal, waiter: Abortable): void {
    const known = this.#bySignal.get(signal);
    if (!known) return;
    known.all.delete(waiter);
    if (known.all.size > 0) return;
    signal.removeEventListener('abort', known.listener);
    this.#bySignal.delete(signal);
  }
}
