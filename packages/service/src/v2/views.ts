/** Views of locks for clients that may read them. They are made member by member, so that no hold or inbox gets in. */
import type { Busy, HolderView, Snapshot, WaiterView } from 'holdfast/protocol';
import type { WaitersHere } from '../waiting/request-queues.js';

const WAITERS_SHOWN = 128;
const HOLDERS_SHOWN = 1_000;
/** For all holders together; each may have 4 KB. Hundreds of views may be sent at once, to clients that read nothing. */
const METADATA_LETTERS_SHOWN = 256 * 1_024;

export interface LockView {
  readonly key: string;
  readonly now: number;
  readonly token: number;
  readonly holders: readonly HolderJson[];
  /** The number of all holders, shown or not. */
  readonly holding: number;
  readonly waiters: readonly WaiterView[];
  readonly waiting: number;
}

export interface HolderJson extends Omit<HolderView, 'metadata'> {
  readonly metadata: unknown;
}

export type MetadataForm = 'json' | 'text';

export function lockView(snapshot: Snapshot, here: WaitersHere, form: MetadataForm): LockView {
  const { key, now, token, holders } = snapshot;
  const queued = sinceFirst(snapshot.waiters, here.inStore);
  const waiters = [...queued, ...unseen(snapshot, here.inStore), ...here.behind];
  return {
    key,
    now,
    token,
    holders: firstOf(holders).map((holder) => holderJson(holder, form)),
    holding: holders.length,
    waiters: waiters.slice(0, WAITERS_SHOWN).map(waiterJson),
    waiting: waiters.length,
  };
}

function firstOf(holders: readonly HolderView[]): readonly HolderView[] {
  let letters = 0;
  const end = holders.findIndex(({ metadata }, index) => {
    letters += metadata?.length ?? 0;
    return index === HOLDERS_SHOWN || (index > 0 && letters > METADATA_LETTERS_SHOWN);
  });
  return end === -1 ? holders : holders.slice(0, end);
}

/** Parses the metadata of a view, which are texts. Views are kept as texts: objects may take twenty times the memory. */
export function withMetadata(view: LockView): LockView {
  const holders = view.holders.map((holder) => {
    const { metadata } = holder;
    return typeof metadata === 'string' ? { ...holder, metadata: metadataJson(metadata) } : holder;
  });
  return { ...view, holders };
}

/**
 * Shows the whole wait of waiters. The store knows since when a waiter claims, but a waiter that was behind others in this
 * process has waited for longer. Views have no holds, so its entry in the store's queue is a guess: the first that is like
 * it and did not come before it. Only for display.
 */
function sinceFirst(queued: readonly WaiterView[], here: readonly WaiterView[]): readonly WaiterView[] {
  const shown = [...queued];
  let from = 0;
  for (const own of here) {
    const at = shown.findIndex(
      (waiter, index) => index >= from && isLike(waiter, own) && waiter.since >= own.since,
    );
    const found = shown[at];
    if (!found) continue;
    shown[at] = { ...found, since: own.since };
    from = at + 1;
  }
  return shown;
}

/**
 * Waiters here who came into the store's queue after the snapshot was taken: in neither list, they would seem to have
 * left. A waiter that is like a holder has probably been granted the lock, and the reply is still on its way.
 */
function unseen({ waiters, holders }: Snapshot, inStore: readonly WaiterView[]): readonly WaiterView[] {
  const seen: Like[] = [...waiters, ...holders];
  return inStore.filter((own) => {
    const at = seen.findIndex((other) => isLike(other, own));
    if (at !== -1) seen.splice(at, 1);
    return at === -1;
  });
}

type Like = Pick<WaiterView, 'owner' | 'permits' | 'capacity'>;

function isLike(a: Like, b: Like): boolean {
  return a.owner === b.owner && a.permits === b.permits && a.capacity === b.capacity;
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

/** The members of a 423 besides those of every problem. */
export function busyMembers({ holders, freeInMs, now }: Busy): Readonly<Record<string, unknown>> {
  return { holders: holders.map((holder) => holderJson(holder)), freeInMs, now };
}
