/** Locks as anybody who may read them sees them. Put together member by member: no hold or inbox can slip in. */
import type { Busy, HolderView, Snapshot, WaiterView } from 'holdfast/protocol';

const WAITERS_SHOWN = 128;

export interface LockView {
  readonly key: string;
  readonly now: number;
  readonly token: number;
  readonly holders: readonly HolderJson[];
  readonly waiters: readonly WaiterView[];
  readonly waiting: number;
}

export interface HolderJson extends Omit<HolderView, 'metadata'> {
  readonly metadata: unknown;
}

export type MetadataForm = 'json' | 'text';

/** `behind`: those who wait in this process, behind what the store knows of. */
export function lockView(snapshot: Snapshot, behind: readonly WaiterView[], form: MetadataForm): LockView {
  const { key, now, token, holders, waiters } = snapshot;
  const all = behind.length === 0 ? waiters : waiters.concat(behind);
  return {
    key,
    now,
    token,
    holders: holders.map((holder) => holderJson(holder, form)),
    waiters: all.slice(0, WAITERS_SHOWN).map(waiterJson),
    waiting: all.length,
  };
}

export function emptyView(key: string, now: number): Snapshot {
  return { key, now, token: 0, holders: [], waiters: [] };
}

function holderJson(view: HolderView, form: MetadataForm = 'json'): HolderJson {
  const { owner, permits, capacity, token, acquiredAt, expiresAt, resting } = view;
  const metadata = form === 'text' ? view.metadata : metadataJson(view.metadata);
  return { owner, permits, capacity, token, acquiredAt, expiresAt, metadata, resting };
}

function waiterJson({ owner, permits, capacity, since, woken }: WaiterView): WaiterView {
  return { owner, permits, capacity, since, woken };
}

/** Libraries of other languages may have stored any text. */
function metadataJson(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}

/** What a 423 says besides that the lock is taken. */
export function busyMembers({ holders, freeInMs, now }: Busy): Readonly<Record<string, unknown>> {
  return { holders: holders.map((holder) => holderJson(holder)), freeInMs, now };
}
