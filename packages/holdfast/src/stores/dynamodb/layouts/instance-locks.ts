/**
 * Locks of instances in the items of LockServiceCentral: who holds is the owner and the instance that are stored, so a
 * lock that was acquired at the one service can be acquired again, renewed and released at the other.
 *
 * Every operation is one conditional write, as over there. A condition that fails brings the item back, which says why.
 *
 *   acquire   absent, over, or of the same instance: sets owner, instance, lease and expiry
 *   renew     of the same instance and not over: adds to lease and expiry
 *   release   of the same instance: leaves a free item (shape.ts), so that tokens and marks of the library go on
 *
 * Writes that arrive twice or late do nothing more. Each has a number, the time in microseconds, which is stored as
 * `holdfastOperation` with the caller's id behind it, and is on condition that the number there is lower. Acquire and
 * release set the numbers of our own part too, so that a late claim of the library fails, and tokens rise. LockServiceCentral
 * drops all of that when it acquires, and keeps it when it renews.
 *
 * Clock: DynamoDB's, estimated. An expiry counts from the latest it may be. A lock is over by the earliest, and a second
 * later than its own service would say, because that goes by other clocks.
 */
import type { Instance, InstanceLease, InstanceLocks, InstanceRenewal } from '../../../protocol/index.js';
import { CLOCKS_APART_MS } from '../../compare-and-swap/foreign.js';
import type { Reading } from '../../compare-and-swap/register.js';
import { Aliases, isAbsent, update } from '../expressions.js';
import type { TimedTable } from '../layout.js';
import { inWords, itemOfFailedCondition, wasSentAgain } from '../trouble.js';
import { type Item, number, text, textIn } from '../values.js';
import {
  highestIn,
  isLater,
  isLaterOperation,
  isOf,
  isSame,
  leaseIn,
  type Numbered,
  numbered,
  numbersOf,
  OPERATION,
} from './instance-item.js';

/** How the items look. */
export interface InstanceShape {
  keyOf(key: string): Item;
  held(key: string, lease: InstanceLease): Item;
  free(sinceMs: number, key: string): Item;
}

/** Others got in between so often: then the outcome is called unknown. */
const TRIES_MAX = 24;
/** What is over since then was released: nothing else is taken by a time that was told long ago. */
const LONG_OVER_SECONDS = 12 * 60 * 60;
/** One attempt: when it is made, and as which write. */
interface Attempt extends Numbered {
  readonly time: Reading;
  /** Locks whose expiry is lower are over. */
  readonly overBelow: number;
}

interface Change {
  readonly condition: string;
  readonly update: string;
}

type Outcome =
  | { readonly kind: 'written'; readonly item: Item }
  /** What is there instead. `isRepeated`: an earlier attempt of the SDK may have come through before that. */
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
    return lease && lease.expiry >= overBelow(await this.#table.now()) ? lease : null;
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
      const below = time.isFresh() ? attempt.overBelow : attempt.overBelow - LONG_OVER_SECONDS;
      const outcome = await this.#write(key, (aliases) => {
        const isOver = `${aliases.name('expiry')} < ${aliases.value(number(below))}`;
        const isTakeable = `(${isOver} OR ${isOf(aliases, instance)}) AND ${isLater(aliases, attempt)}`;
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
      const isBusy = other && !isSame(other, instance) && other.expiry >= attempt.overBelow;
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
          `${expiry} >= ${aliases.value(number(attempt.overBelow))}`,
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
      if (!found || !isSame(found, instance) || found.expiry < attempt.overBelow) {
        return { answer: { kind: 'lost' } };
      }
      const left = found.expiry + seconds - now;
      if (left > secondsMax) return { answer: { kind: 'too-long', seconds: left } };
      // It may have come through before another did: neither again nor not at all is right.
      if (outcome.isRepeated) throw new Error(`Whether the renewal of "${key}" was made cannot be known.`);
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
      return { answer: found && found.expiry >= attempt.overBelow ? 'busy' : 'not-held' };
    });
  }

  /** Tries again, with a higher number, only where the item had a higher one, or changed meanwhile. */
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
      const result = await run({ time, overBelow: overBelow(time), ...numbered(next, id) });
      if ('answer' in result) return result.answer;
      above = result.instead ? highestIn(result.instead, key) : 0;
    }
    throw new Error(`Others changed the record of "${key}" ${TRIES_MAX} times in a row.`);
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
      if (item === undefined) throw inWords(error, name, key);
      // Nothing was there, or the endpoint does not say what.
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
      throw inWords(error, name, key);
    }
  }
}

function overBelow({ earliest }: Reading): number {
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
    `While the record of "${key}" was written, DynamoDB told another time than before: this machine or a clock of ` +
      'the store stood still. The expiry that was written goes by the old one.',
  );
}
