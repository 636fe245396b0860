/**
 * Waits for something or for the end of what it depends on, whichever is first. Each wait leaves nothing behind:
 * `Promise.race` with one promise that lives as long as a connection keeps a little memory for every race, for as long.
 */
export class UntilEnded {
  readonly #rejections = new Set<(error: unknown) => void>();
  #end: { readonly error: unknown } | null = null;

  /** Rejects when it ends first, also when it has ended before. */
  wait<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#end) reject(this.#end.error);
      this.#rejections.add(reject);
      const forget = (): boolean => this.#rejections.delete(reject);
      work.then(resolve, reject).finally(forget);
    });
  }

  /** Every wait rejects with this error. */
  end(error: unknown): void {
    this.#end ??= { error };
    for (const reject of this.#rejections) reject(error);
    this.#rejections.clear();
  }
}
