/** How often the service looks at the store by itself, beyond what clients ask for. Decided here, for all parts. */
import type { Store } from 'holdfast';

export interface Pace {
  /** The pause between two rounds through all watched keys, for `/v2/events` and the dashboard. */
  readonly roundMs: number;
  /** How long a count of all keys is kept for the gauges of `/metrics`. Null: they are never counted. */
  readonly countMs: number | null;
  /** How long `/readyz` goes by the last answer of the store. */
  readonly readyMs: number;
}

const FREE: Pace = { roundMs: 1_000, countMs: 10_000, readyMs: 1_000 };
/** A round or a count reads the whole table: once a second, that is 86,400 scans a day. */
const METERED: Pace = { roundMs: 60_000, countMs: null, readyMs: 10_000 };

export function paceOf({ traits }: Store): Pace {
  return traits.metered ? METERED : FREE;
}
