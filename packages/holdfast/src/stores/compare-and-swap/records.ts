/** Records as maps of fields: the table is the engine's; the layout, which may be other software's, stores a lock in them. */
import { isDeepStrictEqual } from 'node:util';
import { expendableAt, type State, UnsupportedError, type Wake } from '../../protocol/index.js';
import { leavesForeign } from './foreign.js';
import type { Found, Register } from './register.js';

export type Fields = Readonly<Record<string, unknown>>;

export interface FoundRecord<V> {
  /** Null if there is no record. */
  readonly fields: Fields | null;
  readonly version: V;
}

export type PutOutcome<V> =
  | { readonly kind: 'written'; readonly version: V; readonly woken?: boolean }
  /** Another record was there. Null: the engine does not return it. */
  | { readonly kind: 'changed'; readonly found: FoundRecord<V> | null };

export interface RecordTable<V> extends Pick<Register<V>, 'repeats' | 'wake'> {
  /** The version of a record that is not there. */
  readonly absent: V;
  get(key: string): Promise<FoundRecord<V>>;
  /**
   * Replaces the record if its version is still `seen`. From `untilMs` on the record may be deleted; `now` is the latest
   * it may be.
   */
  put(
    key: string,
    fields: Fields,
    seen: V,
    { untilMs, now }: { readonly untilMs: number; readonly now: number },
    wakes?: readonly Wake[],
  ): Promise<PutOutcome<V>>;
}

export interface RecordLayout {
  /** The id of a key's record. Throws an `UnsupportedError` if it has none. */
  idOf(key: string): string;
  /** The beginning of the ids of all keys with this prefix. */
  startOf(prefix: string): string;
  /** Null for an id that is not of a lock. */
  keyIn(id: string): string | null;
  encode(key: string, state: State): Fields;
  /** Throws a `NotALockError`, or an `UnsupportedError` for a newer format. */
  decode(key: string, fields: Fields): State;
  check?: NonNullable<Register<unknown>['check']>;
}

/** The record of the key is not a lock. Commands on it are refused; lists leave it out. */
export class NotALockError extends UnsupportedError {
  constructor(message: string, key: string) {
    super(message, { key });
  }
}

export function recordRegister<V>(table: RecordTable<V>, layout: RecordLayout): Register<V> {
  const absent: Found<V> = { state: null, version: table.absent, lateMs: 0 };
  const foundOf = (key: string, { fields, version }: FoundRecord<V>): Found<V> =>
    fields ? { state: layout.decode(key, fields), version, lateMs: 0 } : absent;
  const read = async (key: string): Promise<Found<V>> => foundOf(key, await table.get(key));
  const { repeats } = table;
  return {
    absent,
    ...(repeats !== undefined && { repeats }),
    ...(table.wake && { wake: table.wake.bind(table) }),
    ...(layout.check && { check: layout.check.bind(layout) }),
    read,
    async write(key, next, { state, version: seen }, now, wakes) {
      if (state && leavesForeign(state, next, now)) {
        // Nothing is written while the other software holds the lock: the record is only read again.
        const found = await read(key);
        return isDeepStrictEqual(found.state, state)
          ? { kind: 'written', version: found.version, lateMs: 0, state }
          : { kind: 'changed', found };
      }
      const untilMs = Math.max(now, expendableAt(next));
      const outcome = await table.put(key, layout.encode(key, next), seen, { untilMs, now }, wakes);
      if (outcome.kind === 'written') return { ...outcome, lateMs: 0 };
      return { kind: 'changed', found: outcome.found && foundOf(key, outcome.found) };
    },
  };
}

/** The state for a list, which leaves out records that are no locks. */
export function listedState(layout: RecordLayout, key: string, fields: Fields): State | null {
  try {
    return layout.decode(key, fields);
  } catch (error) {
    if (error instanceof NotALockError) return null;
    throw error;
  }
}

/** Null for a value that is not the JSON text of an object. */
export function parsedObject(text: unknown): Fields | null {
  if (typeof text !== 'string') return null;
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === 'object' ? (json as Fields | null) : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
