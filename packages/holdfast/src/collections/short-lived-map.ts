/**
 * A map whose entries come and go all the time. When the last one goes it is replaced by a new one: V8 links the tables that a map has
 * outgrown, and they keep what they held alive until a major garbage collection.
 */
export class ShortLivedMap<V> {
  #map = new Map<string, V>();
  #round: Iterator<[string, V]> | null = null;

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
    if (this.#map.size > 1 || !this.#map.has(key)) {
      this.#map.delete(key);
      return;
    }
    this.#map = new Map();
    // It would go on in the map that was replaced.
    this.#round = null;
  }

  /** Goes round the entries, one a call, also while entries come and go. Null at the end of a round. */
  next(): readonly [string, V] | null {
    this.#round ??= this.#map.entries();
    const { done, value } = this.#round.next();
    if (!done) return value;
    this.#round = null;
    return null;
  }

  keys(): readonly string[] {
    return [...this.#map.keys()];
  }

  values(): readonly V[] {
    return [...this.#map.values()];
  }
}
