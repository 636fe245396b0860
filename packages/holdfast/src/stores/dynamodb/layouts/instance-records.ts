/**
 * Locks of instances in the items of LockServiceCentral: the stored owner and instance are the holder, so a lock that was
 * acquired at one service can be acquired again, renewed and released at the other.
 *
 * Every operation is one conditional write, as there. A failed condition returns the item, which gives the reason. A
 * release leaves a free item (shape.ts), so that tokens and marks of the library go on.
 *
 * Writes that arrive twice or late change nothing. Each has a number, the time in microseconds, which is stored as
 * `holdfastOperation` before the caller's id; the condition is that the stored number is lower. Acquire and release also
 * set the numbers of our own part, so that a late claim of the library fails, and tokens rise.
 *
 * Clock: DynamoDB's, estimated. An expiry counts from the latest time possible, and has passed by the earliest.
 */
import {
  EMPTY_STATE,
  type Instance,
  type InstanceLease,
  type InstanceLocks,
  type InstanceRenewal,
} from '../../../protocol/index.js';
import { TRIES_MAX, tooManyRaces } from '../../compare-and-swap/contention.js';
import { CLOCKS_APART_MS } from '../../compare-and-swap/foreign.js';
import {
  type CentralRecord,
  centralIdOf,
  checkedLease,
  freeRecord,
  isSameInstance,
  leasedRecord,
} from '../../compare-and-swap/lock-service-central.js';
import type { Fields } from '../../compare-and-swap/records.js';
import type { Reading } from '../../compare-and-swap/register.js';
import { type Aliases, type Item, isAbsent, number, numberIn, text, textIn, update } from '../item.js';
import type { Change, Outcome } from '../items.js';
import type { TimedTable } from '../layout.js';
import { isAbsentOrOlder, ownAttributes, ownStateIn } from './shape.js';

/** The number of the item's last write, padded because it is compared as a text, and the id of its caller. */
export const OPERATION = 'holdfastOperation';
const DIGITS = String(Number.MAX_SAFE_INTEGER).length;

/** A lock that expired this long ago was released. Other expired locks are only taken by a fresh time. */
const RELEASED_SECONDS = 12 * 60 * 60;
/** One attempt to write: its time, and its number. */
interface Attempt {
  readonly time: Reading;
  /** Locks with a lower expiry have expired. */
  readonly expiredBelow: number;
  readonly number: number;
  /** Unique per write. */
  readonly operation: string;
}

export class InstanceRecords implements InstanceLocks {
  readonly #table: TimedTable;
  #last = 0;

  constructor(table: TimedTable) {
    this.#table = table;
  }

  async read(key: string): Promise<InstanceLease | null> {
    const item = await this.#table.items.get(keyOf(key), key);
    const lease = item && leaseIn(item, key);
    return lease && lease.expiry >= expiredBelow(await this.#table.now()) ? lease : null;
  }

  async acquire(
    key: string,
    instance: Instance,
    seconds: number,
    operation: string,
  ): Promise<InstanceLease | null> {
    const { time } = this.#table;
    return await this.#tryUntilSettled(key, operation, async (attempt) => {
      const { jumps } = time;
      const expiry = Math.floor(attempt.time.latest / 1_000) + seconds;
      const set = itemOf(leasedRecord(key, { ...instance, leaseDuration: seconds, expiry }));
      const below = time.isFresh() ? attempt.expiredBelow : attempt.expiredBelow - RELEASED_SECONDS;
      const outcome = await this.#write(key, (aliases) => {
        const isExpired = `${aliases.name('expiry')} < ${aliases.value(number(below))}`;
        const isTakeable = `(${isExpired} OR ${isOf(aliases, instance)}) AND ${isLater(aliases, attempt)}`;
        return {
          condition: `${isAbsent(aliases, 'lockId')} OR (${isTakeable})`,
          update: update(aliases, { ...set, ...numbersOf(attempt) }, []),
        };
      });
      if (isDone(outcome, attempt)) {
        if (time.jumps !== jumps) {
          throw new Error(`A clock stood still while the record of "${key}" was written.`);
        }
        return { answer: leaseIn(outcome.item, key) };
      }
      const other = outcome.item && leaseIn(outcome.item, key);
      const isBusy = other && !isSameInstance(other, instance) && other.expiry >= attempt.expiredBelow;
      return isBusy ? { answer: null } : { instead: outcome.item };
    });
  }

  async renew(
    key: string,
    instance: Instance,
    seconds: number,
    secondsMax: number,
    operation: string,
  ): Promise<InstanceRenewal> {
    return await this.#tryUntilSettled<InstanceRenewal>(key, operation, async (attempt) => {
      const now = Math.floor(attempt.time.latest / 1_000);
      const outcome = await this.#write(key, (aliases) => {
        const expiry = aliases.name('expiry');
        const lease = aliases.name('leaseDuration');
        const added = aliases.value(number(seconds));
        const condition = [
          `${expiry} >= ${aliases.value(number(attempt.expiredBelow))}`,
          isOf(aliases, instance),
          isLaterOperation(aliases, attempt),
        ];
        if (Number.isFinite(secondsMax)) {
          condition.push(`${expiry} <= ${aliases.value(number(now + secondsMax - seconds))}`);
        }
        const sets = [`${lease} = ${lease} + ${added}`, `${expiry} = ${expiry} + ${added}`];
        const mark = `${aliases.name(OPERATION)} = ${aliases.value(text(attempt.operation))}`;
        return { condition: condition.join(' AND '), update: `SET ${[...sets, mark].join(', ')}` };
      });
      if (isDone(outcome, attempt)) {
        return { answer: { kind: 'renewed', lease: leaseIn(outcome.item, key) } };
      }
      const found = outcome.item && leaseIn(outcome.item, key);
      if (!found || !isSameInstance(found, instance) || found.expiry < attempt.expiredBelow) {
        return { answer: { kind: 'lost' } };
      }
      const left = found.expiry + seconds - now;
      if (left > secondsMax) return { answer: { kind: 'too-long', seconds: left } };
      // The first attempt may have been executed before another write: repeating and skipping may both be wrong.
      if (outcome.kind === 'refused' && outcome.isRepeated)
        throw new Error(`It is unknown whether the renewal of "${key}" was executed.`);
      return { instead: outcome.item };
    });
  }

  async release(
    key: string,
    instance: Instance,
    operation: string,
  ): Promise<'released' | 'not-held' | 'busy'> {
    return await this.#tryUntilSettled(key, operation, async (attempt) => {
      const set = itemOf(freeRecord(key, Math.floor(attempt.number / 1_000)));
      const outcome = await this.#write(key, (aliases) => ({
        condition: `${isOf(aliases, instance)} AND ${isLater(aliases, attempt)}`,
        update: update(aliases, { ...set, ...numbersOf(attempt) }, []),
      }));
      if (isDone(outcome, attempt)) return { answer: 'released' };
      const found = outcome.item && leaseIn(outcome.item, key);
      if (found && isSameInstance(found, instance)) return { instead: outcome.item };
      return { answer: found && found.expiry >= attempt.expiredBelow ? 'busy' : 'not-held' };
    });
  }

  /** Tries again with a higher number where the item had a higher one, or changed meanwhile. */
  async #tryUntilSettled<T>(
    key: string,
    id: string,
    run: (attempt: Attempt) => Promise<{ readonly answer: T } | { readonly instead: Item | null }>,
  ): Promise<T> {
    let above = 0;
    for (let tries = 1; tries <= TRIES_MAX; tries++) {
      const time = await this.#table.now();
      const next = Math.max(time.latest * 1_000, this.#last + 1, above + 1);
      this.#last = next;
      const operation = `${String(next).padStart(DIGITS, '0')}-${id}`;
      const result = await run({ time, expiredBelow: expiredBelow(time), number: next, operation });
      if ('answer' in result) return result.answer;
      above = result.instead ? highestIn(result.instead, key) : 0;
    }
    throw tooManyRaces(key);
  }

  async #write(key: string, changeOf: (aliases: Aliases) => Change): Promise<Outcome> {
    const { items } = this.#table;
    const Key = keyOf(key);
    const outcome = await items.change(Key, key, true, changeOf);
    // A refusal without an item: there was none, or the endpoint does not return it.
    const item = outcome.item ?? (outcome.kind === 'written' ? {} : await items.get(Key, key));
    return { ...outcome, item };
  }
}

function expiredBelow({ earliest }: Reading): number {
  return Math.floor((earliest - CLOCKS_APART_MS) / 1_000);
}

/** Written now, or by an earlier attempt of the SDK. */
function isDone(outcome: Outcome, { operation }: Attempt): outcome is Outcome & { readonly item: Item } {
  return outcome.kind === 'written' || textIn(outcome.item ?? {}, OPERATION) === operation;
}

function isOf(aliases: Aliases, { owner, instanceId }: Instance): string {
  const isOwner = `${aliases.name('owner')} = ${aliases.value(text(owner))}`;
  return `(${isOwner} AND ${aliases.name('instanceId')} = ${aliases.value(text(instanceId))})`;
}

function isLater(aliases: Aliases, attempt: Attempt): string {
  return `${isLaterOperation(aliases, attempt)} AND ${isAbsentOrOlder(aliases, attempt.number)}`;
}

function isLaterOperation(aliases: Aliases, { operation }: Attempt): string {
  const name = aliases.name(OPERATION);
  return `(attribute_not_exists(${name}) OR ${name} < ${aliases.value(text(operation))})`;
}

function numbersOf({ number: next, operation }: Attempt): Item {
  return {
    ...ownAttributes({ ...EMPTY_STATE, token: next, decision: next }),
    [OPERATION]: text(operation),
  };
}

/** The highest number in an item. Throws for one that a newer library wrote. */
function highestIn(item: Item, key: string): number {
  const own = ownStateIn(item, key) ?? EMPTY_STATE;
  const operation = Number.parseInt(textIn(item, OPERATION) ?? '0', 10);
  return Math.max(own.token, own.decision, Number.isSafeInteger(operation) ? operation : 0);
}

function leaseIn(item: Item, key: string): InstanceLease {
  return checkedLease(key, fieldsOf(item));
}

export function keyOf(key: string): Item {
  return { lockId: text(centralIdOf(key)) };
}

export function itemOf(record: CentralRecord): Item {
  const entries = Object.entries(record);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, typeof value === 'number' ? number(value) : text(value)]),
  );
}

/** The attributes of a lease, as fields. */
export function fieldsOf(item: Item): Fields {
  const [owner, instanceId] = [textIn(item, 'owner'), textIn(item, 'instanceId')];
  const [leaseDuration, expiry] = [numberIn(item, 'leaseDuration'), numberIn(item, 'expiry')];
  return { owner, instanceId, leaseDuration, expiry };
}
