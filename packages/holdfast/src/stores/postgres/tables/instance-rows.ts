/**
 * Locks of instances in the rows of LockServiceCentral: the stored owner and instance are the holder, so a lock that was
 * acquired at one service can be acquired again, renewed and released at the other.
 *
 * Every operation is one statement, by the server's clock. A refusal returns the row, which gives the reason.
 *
 *   acquire   absent, expired, or of the same instance: sets owner, instance, lease and expiry
 *   renew     of the same instance and not expired: adds to lease and expiry
 *   release   of the same instance: leaves a free row (layout.ts), so that tokens and marks of the library go on
 *
 * A statement that is executed late changes nothing. Each has a number, the time in microseconds at which it was sent,
 * stored as `operation` in our column; the condition is that the stored number is lower. Acquire and release also set
 * token and decision, so that a late claim of the library fails, and tokens rise.
 *
 * A lock has expired a second later than LockServiceCentral would say, because its processes write expiries by clocks of
 * their own.
 */
import {
  EMPTY_STATE,
  type Instance,
  type InstanceLease,
  type InstanceLocks,
  type InstanceRenewal,
  STATE_VERSION,
  UnsupportedError,
} from '../../../protocol/index.js';
import { TRIES_MAX, tooManyRaces } from '../../compare-and-swap/contention.js';
import { CLOCKS_APART_MS, ownPartIn } from '../../compare-and-swap/foreign.js';
import { isSameInstance } from '../../compare-and-swap/lock-service-central.js';
import type { Reading } from '../../compare-and-swap/register.js';
import type { TableTime, Timed } from '../../sql/sql-table.js';
import { OWN, type Row, rowOf, type TableLayout } from './layout.js';
import type { RowSql } from './row-sql.js';

const SECONDS = 'floor(extract(epoch FROM clock_timestamp()))::bigint';
/** Locks with a lower expiry have expired. */
const EXPIRED_BELOW = `${SECONDS} - ${CLOCKS_APART_MS / 1_000}`;
const IS_OF = "r.owner = $3::jsonb->>'owner' AND r.instance_id = $3::jsonb->>'instanceId'";
const OPERATION = 'operation';
const EXPIRY = '"expiry"';

/** A write: the row written, or the row that was there instead. */
export interface Outcome {
  readonly written: string | null;
  readonly found: string | null;
  /** The server undid the statement, because another was faster. */
  readonly isUndone: boolean;
}

interface Rows {
  readonly sql: RowSql;
  readonly layout: TableLayout;
  readonly time: TableTime;
  read(key: string): Promise<Timed<string | null>>;
  /** Runs a statement with the name as `$1`. */
  change(text: string, key: string, values: readonly string[]): Promise<Timed<Outcome>>;
}

/** A condition: the numbers in our column are missing, or lower than the statement's. */
const isLower = (...names: readonly string[]): string =>
  names.map((name) => `coalesce(r.${OWN}->'${name}' < $3::jsonb->'number', true)`).join(' AND ');
/** A row of a newer format is never changed. */
const IS_KNOWN = `coalesce(r.${OWN}->'version' = '${STATE_VERSION}', true)`;
const IS_LATER = `${IS_KNOWN} AND ${isLower('token', 'decision', OPERATION)}`;

/** The answer, or the highest number in the row that was in the way. */
type Attempt<T> = { readonly answer: T } | { readonly above: number };

/** Sends the statement with this new row. Returns the row written, or the row that was there instead. */
type Change = (
  text: string,
  next: Row,
) => Promise<{ readonly written: Row | null; readonly found: Row | null }>;

export class InstanceRows implements InstanceLocks {
  readonly #rows: Rows;
  #last = 0;

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  async read(key: string): Promise<InstanceLease | null> {
    const { time, read } = this.#rows;
    const text = await time.timed(() => read(key));
    const lease = text === null ? null : leaseIn(JSON.parse(text) as Row, key);
    return lease && isActive(lease, await time.now()) ? lease : null;
  }

  acquire(key: string, instance: Instance, seconds: number): Promise<InstanceLease | null> {
    const { names, inserting, assigned, changing } = this.#rows.sql;
    const values = names.map((name) => (name === EXPIRY ? `${SECONDS} + n.${name}` : `n.${name}`));
    const text = changing(`${inserting(values)} UPDATE SET ${assigned('excluded')}
      WHERE (r.expiry < ${EXPIRED_BELOW} OR (${IS_OF})) AND ${IS_LATER}`);
    const { owner, instanceId } = instance;
    return this.#tryUntilSettled(key, instance, async (number, change) => {
      const lease = { owner, instance_id: instanceId, lease_duration: seconds, expiry: seconds };
      const { written, found } = await change(text, { ...this.#freeRow(key, number), ...lease });
      if (written) return { answer: leaseIn(written, key) };
      const other = found && leaseIn(found, key);
      const isBusy =
        other && !isSameInstance(other, instance) && isActive(other, await this.#rows.time.now());
      return isBusy ? { answer: null } : { above: highestIn(found) };
    });
  }

  renew(key: string, instance: Instance, seconds: number, secondsMax: number): Promise<InstanceRenewal> {
    const { updating, changing } = this.#rows.sql;
    const bound = `AND r.expiry + n.expiry - ${SECONDS} <= ${Math.floor(secondsMax)}`;
    const added = `lease_duration = r.lease_duration + n.expiry, expiry = r.expiry + n.expiry`;
    const text = changing(`${updating(`${added}, ${OWN} = coalesce(r.${OWN}, '{}') || n.${OWN}`)}
      r.expiry >= ${EXPIRED_BELOW} AND ${IS_OF} AND ${IS_KNOWN} AND ${isLower(OPERATION)}
      ${Number.isFinite(secondsMax) ? bound : ''}`);
    return this.#tryUntilSettled<InstanceRenewal>(key, instance, async (number, change) => {
      const { written, found } = await change(text, { expiry: seconds, [OWN]: { [OPERATION]: number } });
      if (written) return { answer: { kind: 'renewed', lease: leaseIn(written, key) } };
      const lease = found && leaseIn(found, key);
      const now = await this.#rows.time.now();
      if (!lease || !isSameInstance(lease, instance) || !isActive(lease, now))
        return { answer: { kind: 'lost' } };
      const left = lease.expiry + seconds - Math.floor(now.latest / 1_000);
      if (left > secondsMax) return { answer: { kind: 'too-long', seconds: left } };
      return { above: highestIn(found) };
    });
  }

  release(key: string, instance: Instance): Promise<'released' | 'not-held' | 'busy'> {
    const { updating, assigned, changing } = this.#rows.sql;
    const text = changing(`${updating(assigned('n'))} ${IS_OF} AND ${IS_LATER}`);
    return this.#tryUntilSettled(key, instance, async (number, change) => {
      const { written, found } = await change(text, this.#freeRow(key, number));
      if (written) return { answer: 'released' };
      const lease = found && leaseIn(found, key);
      if (lease && isSameInstance(lease, instance)) return { above: highestIn(found) };
      return { answer: lease && isActive(lease, await this.#rows.time.now()) ? 'busy' : 'not-held' };
    });
  }

  #freeRow(key: string, number: number): Row {
    const row = rowOf(this.#rows.layout, key, { ...EMPTY_STATE, token: number, decision: number });
    return { ...row, [OWN]: { ...(row[OWN] as Row), [OPERATION]: number } };
  }

  /** Tries again with a higher number where the row had a higher one, or changed meanwhile. */
  async #tryUntilSettled<T>(
    key: string,
    instance: Instance,
    run: (number: number, change: Change) => Promise<Attempt<T>>,
  ): Promise<T> {
    const { time } = this.#rows;
    let above = 0;
    for (let tries = 1; tries <= TRIES_MAX; tries++) {
      const number = Math.max((await time.now()).latest * 1_000, this.#last + 1, above + 1);
      this.#last = number;
      let isUndone = false;
      const result = await run(number, async (text, next) => {
        const values = [JSON.stringify(next), JSON.stringify({ ...instance, number })];
        const outcome = await time.timed(() => this.#rows.change(text, key, values));
        isUndone = outcome.isUndone;
        return { written: rowIn(outcome.written), found: rowIn(outcome.found) };
      });
      if (isUndone) continue;
      if ('answer' in result) return result.answer;
      above = result.above;
    }
    throw tooManyRaces(key);
  }
}

function rowIn(text: string | null): Row | null {
  return text === null ? null : (JSON.parse(text) as Row);
}

function isActive({ expiry }: InstanceLease, { earliest }: Reading): boolean {
  return expiry >= Math.floor((earliest - CLOCKS_APART_MS) / 1_000);
}

/** The highest number in a row; 0 where there is none. */
function highestIn(row: Row | null): number {
  const own = (row?.[OWN] ?? {}) as Row;
  const numbers = [own.token, own.decision, own[OPERATION]];
  return Math.max(0, ...numbers.filter((one): one is number => Number.isSafeInteger(one)));
}

/** Throws for a row that is not a lock, or that a newer library wrote. */
function leaseIn(row: Row, key: string): InstanceLease {
  ownPartIn(row[OWN], key);
  const { owner, instance_id: instanceId, lease_duration: seconds, expiry } = row;
  if (typeof owner !== 'string' || typeof instanceId !== 'string' || typeof expiry !== 'number') {
    throw new UnsupportedError(
      `The row of "${key}" is not a lock of LockServiceCentral: it needs owner, instance_id and expiry. Nothing was changed.`,
      { key },
    );
  }
  return { owner, instanceId, leaseDuration: typeof seconds === 'number' ? seconds : 0, expiry };
}
