/**
 * The clock of a time zone, which is put forward and back. Its times (`localMs`) are milliseconds since the epoch, written
 * as if they were UTC. Each of these times has one moment: the first at which the clock reads it, or, for a time skipped
 * when the clock goes forward, the moment of that change. A later time never has an earlier moment.
 */
const DAY_MS = 24 * 3_600_000;

export class ZoneClock {
  readonly #format: Intl.DateTimeFormat;

  /** Throws a RangeError for an unknown zone. */
  constructor(timeZone: string) {
    const number = 'numeric';
    const fields = {
      year: number,
      month: number,
      day: number,
      hour: number,
      minute: number,
      second: number,
    } as const;
    this.#format = new Intl.DateTimeFormat('en-US', { timeZone, hourCycle: 'h23', ...fields });
  }

  /** The latest time that the clock has read up to this moment: it may have been put back since. */
  latestMs(atMs: number): number {
    const offsetMs = this.#offsetMs(atMs);
    const beforeMs = this.#offsetMs(atMs - DAY_MS);
    const nowMs = atMs + offsetMs;
    if (beforeMs <= offsetMs) return nowMs;
    // The clock never showed the time of the change itself: it was put back at that moment.
    return Math.max(nowMs, this.#changeMs(atMs - DAY_MS, atMs) + beforeMs - 1);
  }

  momentMs(localMs: number): number {
    const beforeMs = this.#offsetMs(localMs - DAY_MS);
    const afterMs = this.#offsetMs(localMs + DAY_MS);
    if (beforeMs === afterMs) return localMs - beforeMs;
    const changeMs = this.#changeMs(localMs - DAY_MS, localMs + DAY_MS);
    const firstMs = localMs - beforeMs;
    return firstMs < changeMs ? firstMs : Math.max(changeMs, localMs - afterMs);
  }

  /** How far the clock is ahead of UTC. */
  #offsetMs(atMs: number): number {
    const read: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
    for (const { type, value } of this.#format.formatToParts(atMs)) read[type] = Number(value);
    const { year = 0, month = 1, day, hour, minute, second } = read;
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(atMs / 1_000) * 1_000;
  }

  /** The first moment with another offset than at the beginning. */
  #changeMs(fromMs: number, toMs: number): number {
    const offsetMs = this.#offsetMs(fromMs);
    let [beforeMs, afterMs] = [fromMs, toMs];
    while (afterMs - beforeMs > 1) {
      const middleMs = Math.floor((beforeMs + afterMs) / 2);
      if (this.#offsetMs(middleMs) === offsetMs) beforeMs = middleMs;
      else afterMs = middleMs;
    }
    return afterMs;
  }
}
