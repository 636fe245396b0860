/** A stage with a place for the value that tests of `getOrCreate` look for and create. */
import type { Lease } from '../../src/index.js';
import { type FakeClock, type Stage, stage } from '../engine/stage.js';

/** A place for one value, with the creations that were begun and ended. */
class Place {
  value: string | null = null;
  begun = 0;
  running = 0;
  looks = 0;
  readonly wrong: string[] = [];
  readonly #clock: FakeClock;

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  readonly get = async (): Promise<string | null> => {
    this.looks += 1;
    return this.value;
  };

  /** `signal`: of the caller, whose creation it ends. */
  creating(ms: number, fails = false, signal?: AbortSignal): (lease: Lease) => Promise<string> {
    return async () => {
      this.begun += 1;
      this.running += 1;
      if (this.value !== null) this.wrong.push('created although it was there');
      if (this.running > 1) this.wrong.push('two creations at once');
      await new Promise<void>((resolve) => {
        this.#clock.timer(ms, resolve);
        signal?.addEventListener('abort', () => resolve());
        if (signal?.aborted) resolve();
      });
      this.running -= 1;
      signal?.throwIfAborted();
      if (fails) throw new Error('creation failed');
      this.value = `value ${this.begun}`;
      return this.value;
    };
  }
}

export function scene(): Pick<Stage, 'clock' | 'open'> & { readonly place: Place } {
  const { clock, open } = stage();
  return { clock, open, place: new Place(clock) };
}
