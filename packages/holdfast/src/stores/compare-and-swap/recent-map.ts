/** A map that keeps the entries set last, in two generations, so that dropping the oldest costs nothing per entry. */

export class RecentMap<K, T> {
  readonly #half: number;
  #young = new Map<K, T>();
  #old = new Map<K, T>();

  constructor(sizeMax: number) {
    this.#half = Math.ceil(sizeMax / 2);
  }

  get(key: K): T | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  set(key: K, value: T): void {
    this.#young.set(key, value);
    if (this.#young.size < this.#half) return;
    this.#old = this.#young;
    this.#young = new Map();
  }

  delete(key: K): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }

  clear(): void {
    this.#young.clear();
    this.#old.clear();
  }
}
