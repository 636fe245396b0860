/**
 * A map whose entries come and go all the time. When the last one goes it is replaced by a new one: V8 links the tables that a map has
 * outgrown, and they keep what they held alive until a major garbage collection.
 */
export class ShortLivedMap<V> {
  #map = new Map<string, V>();

  get(key: string): V | undefined {
    return this.#map.get(key);
  }

  has(key: string): boolean {
    return this.#map.has(key);
  }

  set(key: string, value: V): void {
    this.#map.set(key, value);
  }

  delete(key: string): void {
    if (this.#map.size === 1 && this.#map.has(key)) this.#map = new Map();
    else this.#map.delete(key);
  }

  /** One at a time, also while entries come and go. */
  entries(): IterableIterator<[string, V]> {
    return this.#map.entries();
  }

  keys(): readonly string[] {
    return [...this.#map.keys()];
  }

  values(): readonly V[] {
    return [...this.#map.values()];
  }
}
