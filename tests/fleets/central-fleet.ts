/** A fleet of Holdfast and LockServiceCentral, whatever the engine. */
import type { Fleet } from './fleet.js';
import type { MachineClock } from './foreign.js';
import type { Central } from './foreign-central.js';

export interface CentralFleet extends Fleet {
  foreign(clock?: MachineClock): Central;
  /** The lease in the record. */
  stored(name: string): Promise<CentralLease | null>;
  /** Sets fields of the record, as somebody could by hand. */
  edit(name: string, fields: Partial<CentralLease>): Promise<void>;
}

export interface CentralLease {
  readonly owner?: unknown;
  readonly instanceId?: unknown;
  readonly leaseDuration: number;
  readonly expiry: number;
}

/** Its clock is that of its own machine. A renewal adds to what is left, and the second named still counts. */
export const CENTRAL_TIMES = { clocksApartMs: 900, afterForeignMs: 9_000, afterOursMs: 3_000 };
