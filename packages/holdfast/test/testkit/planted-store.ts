/** A store in this process that decides by whatever it is given, so that a planted bug meets the suite. */
import { steadyMs } from '../../src/clock.js';
import {
  type Command,
  type Decision,
  keysInOrder,
  type Reply,
  type State,
  type Store,
  snapshotOf,
  type Why,
} from '../../src/protocol/index.js';
import type { Harness } from '../../src/testkit/index.js';
import { connectionTo } from './connection.js';

export type Decide = (state: State | null, command: Command, now: number) => Decision;

export interface Planting {
  readonly decide: Decide;
  /** Reads, waits a moment, and writes without looking again. */
  readonly readThenWrite?: boolean;
  /** Where the record of a key is kept. */
  readonly place?: (key: string) => string;
}

type Listener = (key: string, why: Why) => void;

export function plantedHarness(planting: Planting): Harness {
  const states = new Map<string, State>();
  const store = plantedStore(planting, states);
  return {
    name: 'planted',
    open: () => Promise.resolve(connectionTo(store)),
    forget: async (key) => void states.delete(key),
    hintMsMax: 150,
  };
}

function plantedStore(
  { decide, readThenWrite, place = (key) => key }: Planting,
  states: Map<string, State>,
): Store {
  const listeners = new Map<string, Set<Listener>>();
  const time = (): number => Math.floor(steadyMs());
  const view = (key: string) => snapshotOf(key, states.get(place(key)) ?? null, time());

  async function applyOne(command: Command): Promise<Reply> {
    const at = place(command.key);
    const decision = decide(states.get(at) ?? null, command, time());
    if (readThenWrite) await null;
    if (decision.changed) states.set(at, decision.state);
    for (const { inbox, why } of decision.wakes) {
      for (const listener of listeners.get(inbox) ?? []) queueMicrotask(() => listener(command.key, why));
    }
    return decision.reply;
  }

  return {
    name: 'planted',
    traits: {
      clock: 'machine',
      clockErrorMs: 0,
      push: true,
      queue: true,
      shared: 'process',
      durable: false,
      livenessPollMs: null,
    },
    apply: (commands) => commands.map(applyOne),
    async listen(inbox, wake) {
      const own = listeners.get(inbox) ?? new Set();
      listeners.set(inbox, own.add(wake));
      return async () => void own.delete(wake);
    },
    read: async (key) => view(key),
    async *list(query) {
      const views = keysInOrder(states.keys(), query).flatMap((key) => view(key) ?? []);
      yield* views.slice(0, query.limit);
    },
    probe: async () => ({
      server: 'planted',
      now: time(),
      findings: [{ level: 'note', text: 'For tests.' }],
    }),
    close: () => Promise.resolve(),
  };
}
