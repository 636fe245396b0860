/** The context of a case: its own connections, keys and processes, and short ways to send commands. */
import assert from 'node:assert/strict';
import type { Lease } from '../../api.js';
import { systemClock } from '../../clock.js';
import type {
  Claim,
  Command,
  HoldId,
  ListQuery,
  Release,
  Renew,
  Reply,
  Snapshot,
  Store,
  Traits,
} from '../../protocol/index.js';
import { LeaseLostError } from '../../protocol/index.js';
import type { ConformanceCase, Harness } from '../harness.js';
import { pause } from '../pause.js';

/** Answers of a store that is not sure of the time, before a case fails. */
const UNSURE_MAX = 20;
/** How often a batch is sent of which a command was not answered. */
const UNANSWERED_MAX = 5;
/** How often a case is played that took longer than its `withinMs`, or in which the machine stood still. */
const PLAYED_MAX = 4;

/** How far each store's time may have been off in its answers so far: a grant counts from the latest time possible. */
const doubts = new WeakMap<Store, number>();

function noteDoubt(store: Store, { doubtMs = 0 }: Reply): void {
  doubts.set(store, Math.max(doubts.get(store) ?? 0, doubtMs));
}

/** The machine stood still for longer than the ttl of a case: it says nothing about the store, and is played again. */
class StoodStill extends Error {}

/** Throws unless the lease lives, or was lost by what the store answered: no renewal was answered before its deadline. */
export function assertInTime(lease: Lease): void {
  if (lease.held) return;
  const { reason } = lease.signal;
  // Without a reason, the deadline is over and no timer has run since.
  const isLate = reason instanceof LeaseLostError ? reason.reason === 'deadline' : true;
  if (isLate) throw new StoodStill('No renewal was answered in time.');
}

export interface CaseContext {
  readonly harness: Harness;
  readonly store: Store;
  /** Opens another connection; closed at the end of the case. */
  another(): Promise<Store>;
  /** A key that no other case uses. */
  readonly name: string;
  /** Further ones. */
  key(): string;
  /** A process that no other case uses. */
  process(): string;
  /** The first hold of such a process. */
  newHold(): HoldId;
  /** How long after its expiry a hold may still count as alive. */
  readonly doubtMs: number;
  /** Waits until something that expires in `ms` has certainly expired, also by an estimated clock. */
  past(ms: number): Promise<void>;
}

/** A case, run on a context of its own. */
export interface CaseDefinition {
  readonly name: string;
  /** False: the case is left out. */
  applies?(harness: Harness): boolean;
  /** The key has several holders. */
  readonly shared?: boolean;
  /** False: the case does not apply, and passes. */
  needs?(traits: Traits): boolean;
  /**
   * What the case expects of the store is only true for this long: waiters that are not heard from leave, and windows end. If
   * it fails and took longer, the machine was too slow to tell anything about the store, and it is played again on new keys.
   */
  readonly withinMs?: number;
  try(context: CaseContext): Promise<void>;
}

export function caseOf(harness: Harness, definition: CaseDefinition): ConformanceCase {
  return {
    name: definition.name,
    async run() {
      const { withinMs = Number.POSITIVE_INFINITY } = definition;
      for (let played = 1; ; played++) {
        const sinceMs = systemClock.monotonicMs();
        try {
          return await play(harness, definition);
        } catch (error) {
          const isTimely = systemClock.monotonicMs() - sinceMs <= withinMs;
          const tellsNothing = error instanceof StoodStill || !isTimely;
          if (!tellsNothing || played === PLAYED_MAX) throw error;
        }
      }
    },
  };
}

async function play(harness: Harness, definition: CaseDefinition): Promise<void> {
  const opened: Store[] = [];
  const open = async (): Promise<Store> => {
    const store = await harness.open();
    opened.push(store);
    return store;
  };
  try {
    const context = await createContext(harness, open, opened);
    if (definition.needs?.(context.store.traits) ?? true) await definition.try(context);
  } finally {
    await Promise.all(opened.map((store) => store.close()));
  }
}

async function createContext(
  harness: Harness,
  open: () => Promise<Store>,
  opened: readonly Store[],
): Promise<CaseContext> {
  const id = systemClock.randomId();
  const { doubtMs = 0 } = harness;
  let made = 0;
  const key = (): string => `kit-${id}-${made++}`;
  const process = (): string => `process-${id}-${made++}`;
  return {
    harness,
    store: await open(),
    another: open,
    name: key(),
    key,
    process,
    newHold: () => ({ process: process(), number: 1 }),
    doubtMs,
    past: (ms) => pause(ms + doubtMs + Math.max(...opened.map((store) => doubts.get(store) ?? 0))),
  };
}

export function claimOf(key: string, hold: HoldId, more: Partial<Claim> = {}): Claim {
  return {
    kind: 'claim',
    key,
    hold,
    owner: 'kit',
    permits: 1,
    capacity: 1,
    ttlMs: 60_000,
    queue: true,
    inbox: null,
    metadata: null,
    ...more,
  };
}

export function renewOf(key: string, hold: HoldId, more: Partial<Renew> = {}): Renew {
  return { kind: 'renew', key, hold, ttlMs: 60_000, block: false, ...more };
}

export function releaseOf(key: string, hold: HoldId, more: Partial<Release> = {}): Release {
  return { kind: 'release', key, hold, minHoldMs: 0, ...more };
}

export async function send(store: Store, command: Command): Promise<Reply> {
  const [promise] = store.apply([command]);
  assert.ok(promise, 'apply returned no promise for its command');
  const reply = await promise;
  noteDoubt(store, reply);
  return reply;
}

export async function sendAll(store: Store, commands: readonly Command[]): Promise<readonly Reply[]> {
  const promises = store.apply(commands);
  assert.equal(promises.length, commands.length, 'apply must return one promise a command');
  const replies = await Promise.all(promises);
  for (const reply of replies) noteDoubt(store, reply);
  return replies;
}

/** A slow store may give up some commands of a large batch: those are unknown, and are sent again, as the engine does. */
export async function sendUntilAnswered(
  store: Store,
  commands: readonly Command[],
): Promise<readonly Reply[]> {
  for (let tries = 1; ; tries++) {
    try {
      return await sendAll(store, commands);
    } catch (error) {
      if (tries === UNANSWERED_MAX || error instanceof assert.AssertionError) throw error;
    }
  }
}

/**
 * Sends one batch and compares the kinds of its replies. A store decides a batch within one call: commands that belong
 * into one window of 500 ms are in it however slow the machine is.
 */
export async function sendTogether(
  store: Store,
  steps: readonly (readonly [Command, Reply['kind'], why?: string])[],
): Promise<readonly Reply[]> {
  const replies = await sendAll(
    store,
    steps.map(([command]) => command),
  );
  for (const [index, [, kind, why]] of steps.entries()) expectKind(replies[index] as Reply, kind, why);
  return replies;
}

type ReplyOf<K extends Reply['kind']> = Extract<Reply, { kind: K }>;

/** Returns the reply if it is of this kind; otherwise throws an error with the reply. */
export function expectKind<K extends Reply['kind']>(reply: Reply, kind: K, why = ''): ReplyOf<K> {
  assert.equal(reply.kind, kind, `expected ${kind}, was answered ${JSON.stringify(reply)}. ${why}`);
  return reply as ReplyOf<K>;
}

export async function sendExpecting<K extends Reply['kind']>(
  store: Store,
  command: Command,
  kind: K,
  why = '',
): Promise<ReplyOf<K>> {
  return expectKind(await send(store, command), kind, why);
}

/** Claims a key whose holder has expired. Asks again while the store says that it knows the time too badly to be sure. */
export async function claimExpired(store: Store, claim: Claim): Promise<ReplyOf<'granted'>> {
  for (let tries = 1; ; tries++) {
    const reply = await send(store, claim);
    const isUnsure = reply.kind === 'busy' && reply.freeInMs <= (reply.doubtMs ?? 0);
    if (!isUnsure || tries === UNSURE_MAX) return expectKind(reply, 'granted');
    await pause(reply.freeInMs + 1);
  }
}

/** The same for the renewal of an evicted hold: once its own time is over, it is no longer told of the eviction. */
export async function renewExpired(store: Store, renewal: Renew): Promise<ReplyOf<'lost'>> {
  for (let tries = 1; ; tries++) {
    const reply = await sendExpecting(store, renewal, 'lost');
    const isUnsure = reply.evicted !== undefined && (reply.doubtMs ?? 0) > 0;
    if (!isUnsure || tries === UNSURE_MAX) return reply;
    await pause((reply.doubtMs ?? 0) + 1);
  }
}

export async function viewsOf(store: Store, query: ListQuery): Promise<Snapshot[]> {
  const views: Snapshot[] = [];
  for await (const view of store.list(query)) views.push(view);
  return views;
}
