/** How often the service reads the store by itself, without a request. */
import type { Store } from 'holdfast';

export interface PollIntervals {
  /** Pause between two rounds through all watched keys, for `/v2/events` and the dashboard. */
  readonly roundMs: number;
  /** How long a count of all keys is used for the gauges of `/metrics`. Null: keys are never counted. */
  readonly countMs: number | null;
  /** How long `/readyz` relies on the last answer of the store. */
  readonly readyMs: number;
}

const FREE: PollIntervals = { roundMs: 1_000, countMs: 10_000, readyMs: 1_000 };
/** A round or a count reads the whole table: once a second, that is 86,400 scans a day. */
const METERED: PollIntervals = { roundMs: 60_000, countMs: null, readyMs: 10_000 };

export function pollIntervalsOf({ traits }: Store): PollIntervals {
  return traits.metered ? METERED : FREE;
}
