/**
 * Holds that are known not to be held, or not any more. Holds are used once, so that stays true. Those who poll a lock
 * that another instance of the same owner holds need ask about it once only.
 */
const REMEMBERED_MAX = 10_000;

export class Strangers {
  readonly #holds = new Set<string>();

  add(hold: string): void {
    this.#holds.add(hold);
    if (this.#holds.size <= REMEMBERED_MAX) return;
    for (const oldest of this.#holds) {
      this.#holds.delete(oldest);
      return;
    }
  }

  has(hold: string): boolean {
    return this.#holds.has(hold);
  }
}
