/**
 * Hearing wake-ups: one stream an inbox. They are a help, not a need, so a stream that is lost costs nothing but time:
 * it is made again at once, and where that fails, by the way, when commands are sent. No timer watches it.
 */
import { systemClock } from '../../clock.js';
import { type Stop, UnsupportedError, type Why } from '../../protocol/index.js';
import { Hearing, type Listener } from './hearing.js';
import type { Line } from './line.js';

/** The pause after a failed try, doubling. */
const AGAIN_MS = 250;
const AGAIN_MS_MAX = 5_000;
/** After a refusal: a store that has no wake-ups gets them with another store only. */
const REFUSED_MS = 60_000;

export class Ears {
  readonly #line: Line;
  readonly #ears = new Set<Ear>();

  constructor(line: Line) {
    this.#line = line;
  }

  /** Resolves when it is listened to; rejects when that cannot be now. */
  async listen(
    inbox: string,
    wake: (key: string, why: Why) => void,
    hears: (hearing: boolean) => void,
  ): Promise<Stop> {
    const ear = new Ear(this.#line, inbox, wake, hears);
    this.#ears.add(ear);
    try {
      await ear.begin();
    } catch (error) {
      this.#forget(ear);
      throw error;
    }
    return async () => this.#forget(ear);
  }

  /** Makes lost streams again, unless that was tried a moment ago. */
  mend(): void {
    for (const ear of this.#ears) ear.mend();
  }

  /** Streams from there are not to be relied on. */
  left(url: string): void {
    for (const ear of this.#ears) ear.left(url);
  }

  /** What went wrong last, if something is not heard now. */
  trouble(): unknown {
    for (const { trouble } of this.#ears) if (trouble) return trouble;
    return null;
  }

  close(): void {
    for (const ear of this.#ears) this.#forget(ear);
  }

  #forget(ear: Ear): void {
    this.#ears.delete(ear);
    ear.stop();
  }
}

class Ear implements Listener {
  readonly onWake: (key: string, why: Why) => void;
  readonly #line: Line;
  readonly #inbox: string;
  readonly #hears: (hearing: boolean) => void;
  #hearing: Hearing | null = null;
  #told = true;
  #failures = 0;
  #againMs = 0;
  #stopped = false;
  trouble: unknown = null;

  constructor(line: Line, inbox: string, wake: Listener['onWake'], hears: Listener['onHears']) {
    this.#line = line;
    this.#inbox = inbox;
    this.#hears = hears;
    this.onWake = wake;
  }

  onHears(hearing: boolean): void {
    if (hearing === this.#told || this.#stopped) return;
    this.#told = hearing;
    this.#hears(hearing);
  }

  /** Where the store behind the service has no wake-ups, that is said to `hears`, and is no failure. */
  async begin(): Promise<void> {
    try {
      await this.#connect();
    } catch (error) {
      if (!(error instanceof UnsupportedError) || this.#stopped) throw error;
      this.#failed(error);
    }
  }

  mend(): void {
    if (this.#hearing?.isStale) this.#hearing.end('The stream of wake-ups fell silent.');
    if (!this.#hearing && systemClock.monotonicMs() >= this.#againMs) void this.#connectAgain();
  }

  left(url: string): void {
    if (this.#hearing?.url === url) this.#hearing.end(`The service at ${url} does not answer.`);
  }

  stop(): void {
    this.#stopped = true;
    this.#hearing?.end('Nobody listens any more.');
  }

  async #connect(): Promise<void> {
    const hearing = new Hearing(this.#line, this.#inbox, this);
    this.#hearing = hearing;
    try {
      await hearing.ready;
    } catch (error) {
      this.#hearing = null;
      throw error;
    }
    this.#failures = 0;
    this.trouble = null;
    void hearing.over.then((reason) => this.#lost(reason));
  }

  #lost(reason: unknown): void {
    this.#hearing = null;
    if (this.#stopped) return;
    this.trouble = reason;
    this.onHears(false);
    void this.#connectAgain();
  }

  /** Once at every service, since the one that failed may be the one of several that is gone. */
  async #connectAgain(): Promise<void> {
    for (let left = this.#line.servers.count; left > 0 && !this.#stopped && !this.#hearing; left -= 1) {
      try {
        await this.#connect();
        this.onHears(true);
        return;
      } catch (error) {
        this.#failed(error);
      }
    }
  }

  #failed(error: unknown): void {
    this.trouble = error;
    const pauseMs =
      error instanceof UnsupportedError ? REFUSED_MS : Math.min(AGAIN_MS * 2 ** this.#failures, AGAIN_MS_MAX);
    this.#failures += 1;
    this.#againMs = systemClock.monotonicMs() + pauseMs;
    this.onHears(false);
  }
}
