/** How long a call takes while the store is not busy: a faster call counts at once, a slower one only a little. */
export class CallTime {
  #ms: number | null = null;

  get ms(): number {
    return this.#ms ?? 0;
  }

  note(ms: number): void {
    const before = this.#ms ?? ms;
    this.#ms = ms < before ? ms : before + (ms - before) / 16;
  }
}
