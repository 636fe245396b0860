/** An instance's lock in an item, the number of the item's last write, and conditions on both. */
import { EMPTY_STATE, type Instance, type InstanceLease, UnsupportedError } from '../../../protocol/index.js';
import { type Aliases, type Item, numberIn, text, textIn } from '../item.js';
import { isAbsentOrOlder, ownAttributes, ownStateIn } from './own-part.js';

export const OPERATION = 'holdfastOperation';

/** Numbers are padded, because they are compared as texts. */
const DIGITS = String(Number.MAX_SAFE_INTEGER).length;

/** A write with its number. */
export interface NumberedWrite {
  readonly number: number;
  /** The number and the caller's id: unique per write. */
  readonly operation: string;
}

export function numbered(next: number, id: string): NumberedWrite {
  return { number: next, operation: `${String(next).padStart(DIGITS, '0')}-${id}` };
}

export function isOf(aliases: Aliases, { owner, instanceId }: Instance): string {
  const isOwner = `${aliases.name('owner')} = ${aliases.value(text(owner))}`;
  return `(${isOwner} AND ${aliases.name('instanceId')} = ${aliases.value(text(instanceId))})`;
}

export function isLater(aliases: Aliases, write: NumberedWrite): string {
  return `${isLaterOperation(aliases, write)} AND ${isAbsentOrOlder(aliases, write.number)}`;
}

export function isLaterOperation(aliases: Aliases, { operation }: NumberedWrite): string {
  const name = aliases.name(OPERATION);
  return `(attribute_not_exists(${name}) OR ${name} < ${aliases.value(text(operation))})`;
}

export function numbersOf({ number: next, operation }: NumberedWrite): Item {
  return {
    ...ownAttributes({ ...EMPTY_STATE, token: next, decision: next }),
    [OPERATION]: text(operation),
  };
}

/** The highest number in an item. Throws for one that a newer library wrote. */
export function highestIn(item: Item, key: string): number {
  const own = ownStateIn(item, key) ?? EMPTY_STATE;
  const operation = Number.parseInt(textIn(item, OPERATION) ?? '0', 10);
  return Math.max(own.token, own.decision, Number.isSafeInteger(operation) ? operation : 0);
}

export function leaseIn(item: Item, key: string): InstanceLease {
  const owner = textIn(item, 'owner');
  const instanceId = textIn(item, 'instanceId');
  const expiry = numberIn(item, 'expiry');
  if (owner === undefined || instanceId === undefined || expiry === undefined) {
    throw new UnsupportedError(
      `The item of "${key}" is not a lock of LockServiceCentral: it needs owner, instanceId and expiry. Nothing was changed.`,
      { key },
    );
  }
  return { owner, instanceId, leaseDuration: numberIn(item, 'leaseDuration') ?? 0, expiry };
}

export function isSame(a: Instance, b: Instance): boolean {
  return a.owner === b.owner && a.instanceId === b.instanceId;
}
