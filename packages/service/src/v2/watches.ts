/** One watch per prefix, shared by all its watchers: created for the first, ended with the last. */
import type { ServiceParts } from '../http/service-parts.js';
import { ReadScheduler } from './read-scheduler.js';
import { Watch, type Watcher, type WatchSchedulers } from './watch.js';

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
