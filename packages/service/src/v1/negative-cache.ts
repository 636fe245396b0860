/**
 * Holds that are known not to be held, or not any more. A hold is used once, so that stays true. A client that polls a lock
 * which another instance of the same owner holds asks the store about it only once.
 */
const CACHED_MAX = 10_000;

export class NegativeCache {
  readonly #holds = new Set<string>();

  add(hold: string): void {
    this.#holds.add(hold);
    if (this.#holds.size <= CACHED_MAX) return;
    for (const oldest of this.#holds) {
      this.#holds.delete(oldest);
      return;
    }
  }

  has(hold: string): boolean {
    return this.#holds.has(hold);
  }
}
