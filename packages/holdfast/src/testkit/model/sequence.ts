/**
 * Runs one key on the store and on `decide`. In turn: one command or batch after the other; replies, views and wake-ups
 * are compared at once. Concurrently: several connections at once; the history is explained afterwards.
 */
import assert from 'node:assert/strict';
import { systemClock } from '../../clock.js';
import {
  type Command,
  EMPTY_STATE,
  KEEP_MS,
  NotExecutedError,
  type Reply,
  type State,
  type Store,
  snapshotOf,
  WAITER_LIFE_MS,
  type Wake,
} from '../../protocol/index.js';
import { pause } from '../pause.js';
import { type Random, seededRandom } from '../random.js';
import { type Entry, earliestOf, explainAll, explainNext } from './history.js';
import { pauseTowards } from './moments.js';
import {
  type KeyScript,
  learn,
  newProcess,
  nextCommand,
  type ScriptedProcess,
  type Shape,
} from './script.js';
import type { WakeUps } from './wake-ups.js';

export interface ModelRun {
  readonly run: string;
  readonly stores: readonly Store[];
  readonly hints: WakeUps;
  readonly hintMsMax: number;
  /** Whether a claim may be refused a place though the queue is shorter than `QUEUE_MAX`. */
  readonly turnsAway: boolean;
  readonly steps: number;
  /** Kinds of locks, one per key. */
  readonly shapes: readonly Shape[];
  /** Set at the first failure: the others stop. */
  over: boolean;
}

export interface SequenceResult {
  readonly history: Entry[];
  readonly met: boolean[];
  readonly wakes: Wake[];
}

const LONGEST_STEP_MS = 10_000;
/** Of a command that the store did not execute. */
const TRIES_MAX = 20;

/** Processes per connection. */
export const PROCESSES = 2;

export function inboxOf(run: string, connection: number, process: number): string {
  return `inbox-${run}-${connection}-${process}`;
}

function processesOf(stage: ModelRun): ScriptedProcess[] {
  return stage.stores.flatMap((_, connection) =>
    Array.from({ length: PROCESSES }, (_none, index) => {
      const inbox = inboxOf(stage.run, connection, index);
      const cannotListen = connection === 0 && index === PROCESSES - 1;
      return newProcess(
        `process-${stage.run}-${connection}-${index}`,
        cannotListen ? null : inbox,
        connection,
      );
    }),
  );
}

function scriptOf(stage: ModelRun, seed: number, random: Random): KeyScript {
  return {
    key: `model-${stage.run}-${seed}`,
    shape: random.pick(stage.shapes),
    random,
    tokens: [],
    renewalsAfter: 0,
  };
}

/** One command after the other, from random processes. */
export async function runInTurn(stage: ModelRun, seed: number, played: SequenceResult): Promise<void> {
  const random = seededRandom(seed);
  const script = scriptOf(stage, seed, random);
  const processes = processesOf(stage);
  let longPauses = random.chance(0.03) ? 1 : 0;
  let state: State = EMPTY_STATE;
  let now = 0;
  // Older marks may be dropped with the next change or before: stores may differ there.
  const until = systemClock.monotonicMs() + KEEP_MS - LONGEST_STEP_MS;
  while (played.history.length < stage.steps && !stage.over && systemClock.monotonicMs() < until) {
    const actor = random.pick(processes);
    const store = storeOf(stage, actor);
    if (longPauses > 0 && state.waiters.length > 0) {
      longPauses -= 1;
      await pause(WAITER_LIFE_MS + 20);
    } else {
      await pause(pauseTowards(state, now, random));
    }
    const heardBefore = stage.hints.count(script.key);
    const commands = Array.from({ length: random.chance(0.15) ? 3 : 1 }, () => nextCommand(script, actor));
    const wakes: Wake[] = [];
    for (const entry of await exchange(stage, store, commands)) {
      played.history.push(entry);
      learn(script, actor, entry.command, entry.reply);
      const explained = explainNext(state, entry);
      state = explained.state;
      now = earliestOf(entry.reply);
      played.met.push(...explained.met);
      wakes.push(...explained.wakes);
    }
    played.wakes.push(...wakes);
    if (store.traits.push) await stage.hints.all(script.key, wakes, heardBefore, stage.hintMsMax);
    if (random.chance(0.1)) await compareView(store, script.key, state);
  }
  assert.deepEqual(stage.hints.strays(script.key, played.wakes), [], 'hints came that decide does not send');
}

/** All processes at once, each at its own pace. */
export async function runConcurrently(stage: ModelRun, seed: number, played: SequenceResult): Promise<void> {
  const script = scriptOf(stage, seed, seededRandom(seed));
  const seen = { decision: 0 };
  const processes = processesOf(stage);
  await Promise.all(
    processes.map(async (actor, index) => {
      const own: KeyScript = { ...script, random: seededRandom(seed * 31 + index) };
      const store = storeOf(stage, actor);
      for (let said = 0; said < stage.steps / processes.length && !stage.over; said++) {
        await pause(paceOf(own.random, played.history.at(-1)?.reply));
        const after = seen.decision;
        for (const entry of await exchange(stage, store, [nextCommand(own, actor)])) {
          const { command, reply } = entry;
          played.history.push(entry);
          learn(own, actor, command, reply);
          assert.ok(reply.decision >= after, 'a command sent after a reply was decided before it');
          seen.decision = Math.max(seen.decision, reply.decision);
        }
      }
    }),
  );
  const explained = explainAll(played.history);
  played.met.push(...explained.met);
  played.wakes.push(...explained.wakes);
  if (!stage.stores.every((store) => store.traits.push)) return;
  await stage.hints.all(script.key, explained.wakes, 0, stage.hintMsMax);
  assert.deepEqual(
    stage.hints.strays(script.key, explained.wakes),
    [],
    'hints came that decide does not send',
  );
}

function storeOf(stage: ModelRun, actor: ScriptedProcess): Store {
  const store = stage.stores[actor.connection];
  assert.ok(store);
  return store;
}

/** A claim that was refused a place was decided as one that does not queue. */
async function exchange(
  { turnsAway }: ModelRun,
  store: Store,
  commands: readonly Command[],
): Promise<readonly Entry[]> {
  const replies = store.apply(commands);
  assert.equal(replies.length, commands.length, 'apply must return one promise a command');
  let isRepeated = false;
  const repeat = (command: Command): Promise<Reply> | undefined => {
    isRepeated = true;
    return store.apply([command])[0];
  };
  const entries = await Promise.all(
    commands.map(async (said, index): Promise<Entry> => {
      const reply = await executed(said, replies[index], repeat);
      if (said.kind !== 'claim') return { command: said, reply };
      const isTurnedAway = turnsAway && reply.kind === 'busy' && reply.position === null;
      const queue = said.queue && store.traits.queue && !isTurnedAway;
      return { command: { ...said, queue }, reply };
    }),
  );
  // A repeated command was decided after those behind it.
  return isRepeated ? entries.sort((one, other) => one.reply.decision - other.reply.decision) : entries;
}

/** The reply, also where the store first says that it did not execute the command, and to send it again at once. */
async function executed(
  command: Command,
  first: Promise<Reply> | undefined,
  repeat: (command: Command) => Promise<Reply> | undefined,
): Promise<Reply> {
  let reply = first;
  for (let tries = 1; ; tries++) {
    try {
      assert.ok(reply);
      return await reply;
    } catch (error) {
      const isAgain = error instanceof NotExecutedError && error.retry === 'at-once';
      if (!isAgain || tries === TRIES_MAX) throw error;
      reply = repeat(command);
    }
  }
}

/** Concurrent processes do not know the state; the last reply says roughly when something expires. */
function paceOf(random: Random, last: Reply | undefined): number {
  const draw = random.next();
  if (draw < 0.35) return 0;
  if (draw < 0.45) return random.between(1, 15);
  if (draw < 0.55) return random.between(450, 520);
  if (last?.kind === 'busy') return Math.min(last.freeInMs + random.between(-1, 2), 210);
  if (last?.kind === 'granted' || last?.kind === 'renewed')
    return last.expiresAt - earliestOf(last) + random.between(-1, 2);
  return random.between(20, 120);
}

async function compareView(store: Store, key: string, state: State): Promise<void> {
  const view = await store.read(key);
  const now = view?.now ?? (await store.probe()).now;
  assert.deepEqual(view, snapshotOf(key, state, now), 'read does not show what the key is');
}
