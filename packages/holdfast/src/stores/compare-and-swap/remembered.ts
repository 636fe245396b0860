/** What was last seen of the keys used last: two generations, so that forgetting the oldest costs nothing. */

export class Remembered<T> {
  readonly #half: number;
  #young = new Map<string, T>();
  #old = new Map<string, T>();

  /** At most so many. */
  constructor(most: number) {
    this.#half = Math.ceil(most / 2);
  }

  get(key: string): T | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  set(key: string, value: T): void {
    this.#young.set(key, value);
    if (this.#young.size < this.#half) return;
    this.#old = this.#young;
    this.#young = new Map();
  }

  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }

  clear(): void {
    this.#young.clear();
    this.#old.clear();
  }
}
