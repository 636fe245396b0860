/** One watch for all who watch the same keys: it comes with the first of them, and goes with the last. */
import type { ServiceParts } from '../http/service-parts.js';
import { Turns } from './turns.js';
import { Watch, type Watcher, type WatchTurns } from './watch.js';

export class Watches {
  readonly #parts: ServiceParts;
  readonly #turns: WatchTurns = { pages: new Turns(), touched: new Turns() };
  readonly #watches = new Map<string, Watch>();

  constructor(parts: ServiceParts) {
    this.#parts = parts;
  }

  /** Returns a function that ends it. */
  join(prefix: string, watcher: Watcher): () => void {
    const watch = this.#watches.get(prefix) ?? new Watch(this.#parts, prefix, this.#turns);
    this.#watches.set(prefix, watch);
    const leave = watch.add(watcher);
    return () => {
      leave();
      if (watch.isOver && this.#watches.get(prefix) === watch) this.#watches.delete(prefix);
    };
  }
}
