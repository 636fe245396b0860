/** What a case works with: connections, keys and processes of its own, and short ways to say a command. */
import assert from 'node:assert/strict';
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
import type { ConformanceCase, Harness } from '../harness.js';
import { pause } from '../pause.js';

export interface Scene {
  readonly harness: Harness;
  readonly store: Store;
  /** A second, third, … connection; closed with the scene. */
  another(): Promise<Store>;
  /** A key that no other case uses. */
  key(): string;
  /** A process that no other case uses. */
  process(): string;
  /** How long past its end something may still count as alive. */
  readonly doubtMs: number;
  /** Waits until what ends in so long is over, however the store's time is in doubt. */
  past(ms: number): Promise<void>;
}

/** A promise about the store, tried on a scene of its own. */
export interface Promised {
  readonly name: string;
  /** Left out where this says no. */
  applies?(harness: Harness): boolean;
  /** Nothing to keep where this says no: the case passes. */
  needs?(traits: Traits): boolean;
  /**
   * For what has to be said in time, such as within a window of 500 ms: a failure that took longer than this says
   * nothing about the store, only about a busy machine, and the case is tried again.
   */
  readonly inMs?: number;
  try(scene: Scene): Promise<void>;
}

const TRIES_MAX = 5;

export function caseOf(harness: Harness, promised: Promised): ConformanceCase {
  return {
    name: promised.name,
    async run() {
      const opened: Store[] = [];
      const open = async (): Promise<Store> => {
        const store = await harness.open();
        opened.push(store);
        return store;
      };
      try {
        const scene = await setScene(harness, open);
        if (promised.needs?.(scene.store.traits) ?? true) await tryInTime(promised, scene);
      } finally {
        await Promise.all(opened.map((store) => store.close()));
      }
    },
  };
}

async function tryInTime(promised: Promised, scene: Scene): Promise<void> {
  for (let tries = 1; ; tries++) {
    const since = systemClock.monotonicMs();
    try {
      return await promised.try(scene);
    } catch (error) {
      const inMs = (promised.inMs ?? Number.POSITIVE_INFINITY) + scene.doubtMs;
      const wasInTime = systemClock.monotonicMs() - since <= inMs;
      if (wasInTime || tries >= TRIES_MAX) throw error;
    }
  }
}

async function setScene(harness: Harness, open: () => Promise<Store>): Promise<Scene> {
  const id = systemClock.randomId();
  const { doubtMs = 0 } = harness;
  let made = 0;
  return {
    harness,
    store: await open(),
    another: open,
    key: () => `kit-${id}-${made++}`,
    process: () => `process-${id}-${made++}`,
    doubtMs,
    past: (ms) => pause(ms + doubtMs),
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
    ttlMs: 10_000,
    queue: true,
    inbox: null,
    metadata: null,
    ...more,
  };
}

export function renewOf(key: string, hold: HoldId, more: Partial<Renew> = {}): Renew {
  return { kind: 'renew', key, hold, ttlMs: 10_000, block: false, ...more };
}

export function releaseOf(key: string, hold: HoldId, more: Partial<Release> = {}): Release {
  return { kind: 'release', key, hold, minHoldMs: 0, ...more };
}

export async function say(store: Store, command: Command): Promise<Reply> {
  const [reply] = store.apply([command]);
  assert.ok(reply, 'apply returned no promise for its command');
  return await reply;
}

export async function sayAll(store: Store, commands: readonly Command[]): Promise<readonly Reply[]> {
  const replies = store.apply(commands);
  assert.equal(replies.length, commands.length, 'apply must return one promise a command');
  return await Promise.all(replies);
}

type ReplyOf<K extends Reply['kind']> = Extract<Reply, { kind: K }>;

/** The reply, known to be of this kind; or an error that says what was answered instead. */
export function expectKind<K extends Reply['kind']>(reply: Reply, kind: K, why = ''): ReplyOf<K> {
  assert.equal(reply.kind, kind, `expected ${kind}, was answered ${JSON.stringify(reply)}. ${why}`);
  return reply as ReplyOf<K>;
}

export async function sayFor<K extends Reply['kind']>(
  store: Store,
  command: Command,
  kind: K,
  why = '',
): Promise<ReplyOf<K>> {
  return expectKind(await say(store, command), kind, why);
}

export async function viewsOf(store: Store, query: ListQuery): Promise<Snapshot[]> {
  const views: Snapshot[] = [];
  for await (const view of store.list(query)) views.push(view);
  return views;
}
