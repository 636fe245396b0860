/**
 * Locks of instances in the items of LockServiceCentral: the stored owner and instance are the holder, so a lock that was
 * acquired at one service can be acquired again, renewed and released at the other.
 *
 * Every operation is one conditional write, as there. A failed condition returns the item, which gives the reason.
 *
 *   acquire   absent, expired, or of the same instance: sets owner, instance, lease and expiry
 *   renew     of the same instance and not expired: adds to lease and expiry
 *   release   of the same instance: leaves a free item (shape.ts), so that tokens and marks of the library go on
 *
 * Writes that arrive twice or late change nothing. Each has a number, the time in microseconds, which is stored as
 * `holdfastOperation` before the caller's id; the condition is that the stored number is lower. Acquire and release also
 * set the numbers of our own part, so that a late claim of the library fails, and tokens rise. LockServiceCentral drops
 * all of that when it acquires, and keeps it when it renews.
 *
 * Clock: DynamoDB's, estimated. An expiry counts from the latest time possible. A lock has expired by the earliest, and a
 * second later than LockServiceCentral would say, because that uses other clocks.
 */
import type { Instance, InstanceLease, InstanceLocks, InstanceRenewal } from '../../../protocol/index.js';
import { CLOCKS_APART_MS } from '../../compare-and-swap/foreign.js';
import type { Reading } from '../../compare-and-swap/register.js';
import { explainedError, itemOfFailedCondition, wasSentAgain } from '../errors.js';
import { Aliases, type Item, isAbsent, number, text, textIn, update } from '../item.js';
import type { TimedTable } from '../layout.js';
import {
  highestIn,
  isLater,
  isLaterOperation,
  isOf,
  isSame,
  leaseIn,
  type NumberedWrite,
  numbered,
  numbersOf,
  OPERATION,
} from './instance-item.js';

/** The shape of the items. */
export interface InstanceShape {
  keyOf(key: string): Item;
  held(key: string, lease: InstanceLease): Item;
  free(sinceMs: number, key: string): Item;
}

/** After this many lost races the outcome counts as unknown. */
const TRIES_MAX = 24;
/** A lock that expired this long ago was released. Other expired locks are only taken by a fresh time. */
const RELEASED_SECONDS = 12 * 60 * 60;
/** One attempt: its time, and its number. */
interface Attempt extends NumberedWrite {
  readonly time: Reading;
  /** Locks with a lower expiry have expired. */
  readonly expiredBelow: number;
}

interface Change {
  readonly condition: string;
  readonly update: string;
}

type Outcome =
  | { readonly kind: 'written'; readonly item: Item }
  /** The item that is there. `isRepeated`: an earlier attempt of the SDK may have been executed before. */
  | { readonly kind: 'refused'; readonly item: Item | null; readonly isRepeated: boolean };

export class InstanceRecords implements InstanceLocks {
  readonly #table: TimedTable;
  readonly #shape: InstanceShape;
  #last = 0;

  constructor(table: TimedTable, shape: InstanceShape) {
    this.#table = table;
    this.#shape = shape;
  }

  async read(key: string): Promise<InstanceLease | null> {
    const item = await this.#read(key);
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
      const set = this.#shape.held(key, { ...instance, leaseDuration: seconds, expiry });
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
        if (time.jumps !== jumps) throw jumpedError(key);
        return { answer: leaseIn(outcome.item, key) };
      }
      const other = outcome.item && leaseIn(outcome.item, key);
      const isBusy = other && !isSame(other, instance) && other.expiry >= attempt.expiredBelow;
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
      if (!found || !isSame(found, instance) || found.expiry < attempt.expiredBelow) {
        return { answer: { kind: 'lost' } };
      }
      const left = found.expiry + seconds - now;
      if (left > secondsMax) return { answer: { kind: 'too-long', seconds: left } };
      // The first attempt may have been executed before another write: repeating and skipping may both be wrong.
      if (outcome.isRepeated) throw new Error(`It is unknown whether the renewal of "${key}" was executed.`);
      return { instead: outcome.item };
    });
  }

  async release(
    key: string,
    instance: Instance,
    operation: string,
  ): Promise<'released' | 'not-held' | 'busy'> {
    return await this.#tryUntilSettled(key, operation, async (attempt) => {
      const set = this.#shape.free(Math.floor(attempt.number / 1_000), key);
      const outcome = await this.#write(key, (aliases) => ({
        condition: `${isOf(aliases, instance)} AND ${isLater(aliases, attempt)}`,
        update: update(aliases, { ...set, ...numbersOf(attempt) }, []),
      }));
      if (isDone(outcome, attempt)) return { answer: 'released' };
      const found = outcome.item && leaseIn(outcome.item, key);
      if (found && isSame(found, instance)) return { instead: outcome.item };
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
      const result = await run({ time, expiredBelow: expiredBelow(time), ...numbered(next, id) });
      if ('answer' in result) return result.answer;
      above = result.instead ? highestIn(result.instead, key) : 0;
    }
    throw new Error(
      `Other processes changed the record of "${key}" ${TRIES_MAX} times in a row before this one could.`,
    );
  }

  async #write(key: string, changeOf: (aliases: Aliases) => Change): Promise<Outcome> {
    const { calls, name } = this.#table;
    const aliases = new Aliases();
    const { condition, update: UpdateExpression } = changeOf(aliases);
    try {
      const { Attributes: item = {} } = await calls.update({
        TableName: name,
        Key: this.#shape.keyOf(key),
        ConditionExpression: condition,
        UpdateExpression,
        ReturnValues: 'ALL_NEW',
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        ...aliases.parts,
      });
      return { kind: 'written', item };
    } catch (error) {
      const item = itemOfFailedCondition(error);
      if (item === undefined) throw explainedError(error, name, key);
      // There was no item, or the endpoint does not return it.
      return { kind: 'refused', item: item ?? (await this.#read(key)), isRepeated: wasSentAgain(error) };
    }
  }

  async #read(key: string): Promise<Item | null> {
    const { calls, name } = this.#table;
    try {
      const { Item: item } = await calls.get({
        TableName: name,
        Key: this.#shape.keyOf(key),
        ConsistentRead: true,
      });
      return item ?? null;
    } catch (error) {
      throw explainedError(error, name, key);
    }
  }
}

function expiredBelow({ earliest }: Reading): number {
  return Math.floor((earliest - CLOCKS_APART_MS) / 1_000);
}

/** Written now, or by an earlier attempt of the SDK. */
function isDone(outcome: Outcome, { operation }: Attempt): outcome is Outcome & { readonly item: Item } {
  return (
    outcome.kind === 'written' || (outcome.item !== null && textIn(outcome.item, OPERATION) === operation)
  );
}

function jumpedError(key: string): Error {
  return new Error(
    `A clock stood still while the record of "${key}" was written: that of DynamoDB or of this machine. The expiry that ` +
      'was written may be wrong.',
  );
}
