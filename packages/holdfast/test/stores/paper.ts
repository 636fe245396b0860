/** An engine with compare-and-swap on paper: slow, forgetful, doubling, and with a clock that nobody reads exactly. */
import { setTimeout as sleep } from 'node:timers/promises';
import { steadyMs } from '../../src/clock.js';
import {
  type Claim,
  checkVersion,
  keysInOrder,
  type State,
  type Store,
  snapshotOf,
  type Wake,
  type Why,
} from '../../src/protocol/index.js';
import { firstOf, readInOrder } from '../../src/stores/clients/listed.js';
import type { Found, Register, StoreTime, Written } from '../../src/stores/compare-and-swap/index.js';
import { CompareAndSwap } from '../../src/stores/compare-and-swap/index.js';

interface Sheet {
  readonly text: string;
  readonly revision: number;
  /** How late it was stored. */
  readonly lateMs: number;
}

type Listener = (key: string, why: Why) => void;

export class Paper {
  readonly sheets = new Map<string, Sheet>();
  readonly listeners = new Map<string, Set<Listener>>();
  readonly calls: string[] = [];
  revision = 0;
  samples = 0;

  find(key: string): Found<number> {
    const sheet = this.sheets.get(key);
    if (!sheet) return { state: null, version: 0, lateMs: 0 };
    const state = JSON.parse(sheet.text) as State;
    checkVersion(state.version, key);
    return { state, version: sheet.revision, lateMs: sheet.lateMs };
  }

  put(key: string, state: State, lateMs: number): number {
    this.revision += 1;
    this.sheets.set(key, { text: JSON.stringify(state), revision: this.revision, lateMs });
    return this.revision;
  }
}

export interface Manners {
  /** Whether it can take what is free without having seen it. */
  readonly takes?: boolean;
  /** Whether a refused write says what is there. */
  readonly tells?: boolean;
  /** A share of the writes is sent twice, and the second answer is the one that is heard. */
  readonly doubles?: number;
  /** How far this connection's reading is off, and how far it says it may be. */
  readonly offMs?: number;
  readonly errorMs?: number;
  /** Writes are stored this much later than their writer thought. */
  readonly lateMs?: number;
  readonly fresh?: boolean;
  readonly queue?: boolean;
}

const SLOW_MS = 2;

export function paperRegister(paper: Paper, manners: Manners = {}): Register<number> {
  const { takes = true, tells = true, doubles = 0, lateMs = 0 } = manners;

  const find = (key: string): Found<number> => paper.find(key);

  async function swap(
    key: string,
    nextOf: (found: Found<number>) => State,
    fits: (found: Found<number>) => boolean,
  ): Promise<Written<number>> {
    const once = (): Written<number> => {
      const found = find(key);
      if (!fits(found)) return { kind: 'changed', found: tells ? found : null };
      const next = nextOf(found);
      const late = found.state && next.holders.length + next.rests.length > 1 ? found.lateMs : 0;
      return {
        kind: 'written',
        version: paper.put(key, next, Math.max(lateMs, late)),
        lateMs: Math.max(lateMs, late),
        state: next,
      };
    };
    await sleep(Math.random() * SLOW_MS);
    const first = once();
    if (Math.random() >= doubles) return first;
    await sleep(Math.random() * SLOW_MS);
    return once();
  }

  const register: Register<number> = {
    absent: { state: null, version: 0, lateMs: 0 },
    repeats: doubles > 0,
    async read(key) {
      paper.calls.push(`read ${key}`);
      await sleep(Math.random() * SLOW_MS);
      return find(key);
    },
    write(key, next, seen) {
      paper.calls.push(`write ${key}`);
      return swap(
        key,
        () => next,
        ({ version }) => version === seen.version,
      );
    },
    wake(key, wakes: readonly Wake[]) {
      for (const { inbox, why } of wakes) {
        for (const listener of paper.listeners.get(inbox) ?? []) queueMicrotask(() => listener(key, why));
      }
    },
  };
  if (!takes) return register;
  return {
    ...register,
    async take(claim: Claim, next: State) {
      paper.calls.push(`take ${claim.key}`);
      const isRoom = ({ state }: Found<number>): boolean =>
        state === null ||
        (state.holders.length + state.rests.length + state.waiters.length === 0 &&
          next.holders.every(({ token }) => state.token < token) &&
          state.decision < next.decision &&
          !state.ended.some(
            ({ process, number }) => process === claim.hold.process && number >= claim.hold.number,
          ));
      // What is kept is what is there when it is written, and not when it was asked for.
      return await swap(
        claim.key,
        ({ state }) => ({ ...next, ended: state?.ended ?? [], evictions: state?.evictions ?? [] }),
        isRoom,
      );
    },
  };
}

function paperTime(paper: Paper, { offMs = 0, errorMs = 0, fresh = true }: Manners): StoreTime {
  return {
    reading() {
      const about = steadyMs() + offMs;
      return { earliest: Math.floor(about - errorMs), latest: Math.floor(about + errorMs) };
    },
    isFresh: () => fresh,
    async sample() {
      paper.samples += 1;
    },
  };
}

export function paperStore(paper: Paper, manners: Manners = {}): Store {
  const queue = manners.queue ?? true;
  const swap = new CompareAndSwap(paperRegister(paper, manners), paperTime(paper, manners), {
    name: 'paper',
    queue,
  });
  return {
    name: 'paper',
    traits: {
      clock: 'estimate',
      clockErrorMs: manners.errorMs ?? 0,
      push: true,
      queue,
      shared: 'process',
      durable: false,
      livenessPollMs: null,
    },
    apply: (commands) => swap.apply(commands),
    async listen(inbox, wake) {
      const own = paper.listeners.get(inbox) ?? new Set();
      paper.listeners.set(inbox, own.add(wake));
      return async () => {
        own.delete(wake);
      };
    },
    read: (key) => swap.read(key),
    async *list(query) {
      const { earliest } = await swap.now();
      const views = readInOrder(keysInOrder(paper.sheets.keys(), query), 1, async (key) => {
        const { state, lateMs } = paper.find(key);
        return snapshotOf(key, state, earliest - lateMs);
      });
      yield* firstOf(views, query.limit);
    },
    async probe() {
      const { earliest } = await swap.now();
      return { server: 'paper', now: earliest, findings: [{ level: 'note', text: 'paper is patient' }] };
    },
    async close() {
      swap.close();
    },
  };
}
