/** The keys with holders or waiters. */
import type { KeyInfo, ListOptions, Locks, UnsupportedError } from 'holdfast';
import { listAround } from 'holdfast/protocol';

export interface KeysInUse {
  readonly keys: readonly KeyInfo[];
  /** Why records could not be read, such as those of a newer format. They hide no other key. */
  readonly refusals: readonly UnsupportedError[];
}

export async function keysInUse(
  locks: Locks,
  { limit = Number.MAX_SAFE_INTEGER, ...query }: ListOptions,
): Promise<KeysInUse> {
  const keys: KeyInfo[] = [];
  const refusals: UnsupportedError[] = [];
  const all = listAround(
    (from: ListOptions) => locks.list(from),
    { ...query, limit },
    (refusal) => refusals.push(refusal),
  );
  for await (const info of all) {
    keys.push(info);
    if (keys.length === limit) break;
  }
  return { keys, refusals };
}
