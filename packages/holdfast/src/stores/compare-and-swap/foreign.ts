/**
 * Locks that other software takes too, in records of its own shape. What that software wrote is a state with one holder
 * who is none of ours. What only Holdfast needs (hold, token, marks, metadata) lies beside it in a part of the record
 * that the other software ignores, and loses when it takes the lock.
 *
 * While the others hold, nothing is written: not a mark, not a clean-up, not the same again.
 */
import {
  type Command,
  checkVersion,
  EMPTY_STATE,
  type Holder,
  type HoldId,
  type Rest,
  type State,
  UnsupportedError,
} from '../../protocol/index.js';

/**
 * The others go by the clocks of their machines. So what we hold is written as over so much later than it is, and what
 * they hold counts for so much longer, wherever they have no grace of their own.
 */
export const CLOCKS_APART_MS = 1_000;

/** Holds of ours have random names, so nobody of ours is this one. */
const FOREIGN: HoldId = { process: 'foreign', number: 0 };
const NAMESPACE = 'default/';

/** What other software says of a lock that it holds. */
export interface ForeignHold {
  readonly owner: string;
  readonly acquiredAt: number;
  /** From when on anybody may take it. */
  readonly expiresAt: number;
}

/**
 * The other software numbers nothing. Where a part of ours is left, its numbers and marks go on; else tokens rise by the
 * time.
 */
export function foreignState(
  { owner, acquiredAt, expiresAt }: ForeignHold,
  { token, decision, ended }: Pick<State, 'token' | 'decision' | 'ended'> = EMPTY_STATE,
): State {
  const holder: Holder = {
    hold: FOREIGN,
    owner,
    permits: 1,
    capacity: 1,
    token,
    inbox: null,
    acquiredAt,
    expiresAt,
    metadata: null,
  };
  return { ...EMPTY_STATE, token, decision, ended, holders: [holder] };
}

function foreignHolderIn(state: State): Holder | undefined {
  return state.holders.find(({ hold }) => hold.process === FOREIGN.process);
}

/** Whether the record of other software stays as it is: still held, or over and wanted by nobody. Evictions do end it. */
export function leavesForeign(seen: State, next: State, now: number): boolean {
  const before = foreignHolderIn(seen);
  if (!before) return false;
  if (foreignHolderIn(next)) return true;
  return occupantOf(next) === null && before.expiresAt <= now;
}

/** Whoever keeps the key from others. Layouts of other software carry one at most. */
export function occupantOf({ holders, rests }: State): Holder | Rest | null {
  return holders[0] ?? rests[0] ?? null;
}

/** The part that the other software ignores. */
export function ownPart(state: State): State {
  return { ...state, ended: state.ended.filter(({ process }) => process !== FOREIGN.process) };
}

/** Null where there is no such part: then the other software wrote the record. */
export function ownPartIn(part: unknown, key: string): State | null {
  if (typeof part !== 'object' || part === null || !('version' in part)) return null;
  checkVersion(part.version, key);
  return part as State;
}

/** Layouts of other software keep plain locks: one holder, and no line. */
export function checkPlainLock(command: Command, layout: string): void {
  if (command.kind !== 'claim' || command.capacity === 1) return;
  throw new UnsupportedError(
    `The layout ${layout} has room for one holder, so "${command.key}" can be no semaphore and no read-write lock there. ` +
      'Keep those in a store without a layout.',
    { key: command.key },
  );
}

/** The others have no namespaces: their names are ours as they are, in the namespace that counts when none is named. */
export function bareNameOf(key: string, layout: string): string {
  if (key.startsWith(NAMESPACE)) return key.slice(NAMESPACE.length);
  throw new UnsupportedError(
    `The layout ${layout} has no namespaces: "${key}" would be a lock that the other software does not know. ` +
      'Leave the namespace out of createLocks, and give the names that the other software gives.',
    { key },
  );
}

export function keyOfBareName(name: string): string {
  return NAMESPACE + name;
}
