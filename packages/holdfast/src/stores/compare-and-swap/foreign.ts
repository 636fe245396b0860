/**
 * Locks shared with other software, in records of that software's layout. A record that it wrote is read as a state with
 * one foreign holder. The data that only Holdfast needs (hold, token, marks, metadata) is in a part that other software
 * ignores.
 *
 * While the other software holds the lock, nothing is written: no mark, no clean-up, no identical record.
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
 * Other software uses the clocks of its machines: our holds are written to end this much later, and its holds count
 * longer.
 */
export const CLOCKS_APART_MS = 1_000;

/** The last moment of a `Date`. Later times, and times without an end, count as this. */
export const FAR_MS = 8_640_000_000_000_000;

/** The nearest time that a `Date` can have. */
export function boundedMs(ms: number): number {
  return Math.min(Math.max(ms, 0), FAR_MS);
}

/** Never stored. No process has this id, and the lock service accepts none with a colon from its clients. */
const FOREIGN: HoldId = { process: 'foreign:', number: 0 };
const NAMESPACE = 'default/';

/** A lock held by other software. */
export interface ForeignHold {
  readonly owner: string;
  readonly acquiredAt: number;
  /** From then on, any claim gets the lock. */
  readonly expiresAt: number;
}

/**
 * Other software has no tokens. If our part of the record is left, its numbers and marks go on; else tokens follow the
 * time.
 */
export function foreignState(
  { owner, acquiredAt, expiresAt }: ForeignHold,
  { token, decision, ended, evictions }: State = EMPTY_STATE,
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
  return { ...EMPTY_STATE, token, decision, ended, evictions, holders: [holder] };
}

function foreignHolderIn(state: State): Holder | undefined {
  return state.holders.find(({ hold }) => hold.process === FOREIGN.process);
}

/** Whether the record of other software stays unchanged: still held, or expired and not claimed. An eviction ends it. */
export function leavesForeign(seen: State, next: State, now: number): boolean {
  const before = foreignHolderIn(seen);
  if (!before) return false;
  if (foreignHolderIn(next)) return true;
  return occupantOf(next) === null && before.expiresAt <= now;
}

/** The holder or the rest on the key. Layouts of other software store one at most. */
export function occupantOf({ holders, rests }: State): Holder | Rest | null {
  return holders[0] ?? rests[0] ?? null;
}

function isOwn({ process }: { readonly process: string }): boolean {
  return process !== FOREIGN.process;
}

/** The part that the other software ignores. */
export function ownPart(state: State): State {
  const { ended, evictions } = state;
  if (ended.every(isOwn) && evictions.every(isOwn)) return state;
  return { ...state, ended: ended.filter(isOwn), evictions: evictions.filter(isOwn) };
}

/** The own part without its empty lists. */
export function storedPart(state: State): Readonly<Record<string, unknown>> {
  const stored: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(ownPart(state))) {
    if (!Array.isArray(value) || value.length > 0) stored[name] = value;
  }
  return stored;
}

/** Null if the other software wrote the record. */
export function ownPartIn(part: unknown, key: string): State | null {
  if (typeof part !== 'object' || part === null || !('version' in part)) return null;
  checkVersion(part.version, key);
  return { ...EMPTY_STATE, ...(part as Partial<State>) };
}

/** Layouts of other software store plain locks: one holder, no queue. */
export function checkPlainLock(command: Command, layout: string): void {
  if (command.kind !== 'claim' || command.capacity === 1) return;
  throw new UnsupportedError(
    `The layout ${layout} stores one holder per key, so "${command.key}" cannot be a semaphore or a read-write lock there. ` +
      'Use a store without a layout for those.',
    { key: command.key },
  );
}

/** Other software has no namespaces: its names are the names in our default namespace. */
export function bareNameOf(key: string, layout: string): string {
  if (key.startsWith(NAMESPACE)) return key.slice(NAMESPACE.length);
  throw new UnsupportedError(
    `The layout ${layout} has no namespaces, so the other software cannot know the lock "${key}". ` +
      'Leave the namespace out of createLocks, or name it "default", and use the names that the other software uses.',
    { key },
  );
}

export function keyOfBareName(name: string): string {
  return NAMESPACE + name;
}
