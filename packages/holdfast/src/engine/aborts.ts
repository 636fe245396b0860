/** Many callers may wait with one signal: it gets one listener, not one each. */

interface Abortable {
  onAbort(): void;
}

export class Aborts {
  readonly #waiting = new Map<AbortSignal, { readonly who: Set<Abortable>; readonly listener: () => void }>();

  add(signal: AbortSignal, who: Abortable): void {
    const known = this.#waiting.get(signal);
    if (known) {
      known.who.add(who);
      return;
    }
    const all = new Set([who]);
    const listener = (): void => {
      for (const each of [...all]) each.onAbort();
    };
    signal.addEventListener('abort', listener);
    this.#waiting.set(signal, { who: all, listener });
  }

  remove(signal: AbortSignal, who: Abortable): void {
    const known = this.#waiting.get(signal);
    if (!known) return;
    known.who.delete(who);
    if (known.who.size > 0) return;
    signal.removeEventListener('abort', known.listener);
    this.#waiting.delete(signal);
  }
}
