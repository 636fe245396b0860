/**
 * Plays one key against the store and against `decide`. In turn: one command or batch after the other, replies,
 * views and hints compared at once. As a crowd: several connections at once, explained afterwards.
 */
import assert from 'node:assert/strict';
import { systemClock } from '../../clock.js';
import {
  type Command,
  EMPTY_STATE,
  KEEP_MS,
  type Reply,
  type State,
  type Store,
  snapshotOf,
  WAITER_LIFE_MS,
  type Wake,
} from '../../protocol/index.js';
import { pause } from '../pause.js';
import { type Random, seededRandom } from '../random.js';
import type { Hints } from './hints.js';
import { type Entry, earliestOf, explainAll, explainNext } from './history.js';
import { type Met, pauseTowards } from './moments.js';
import { type Actor, hear, newActor, nextCommand, type Plot, SHAPES } from './script.js';

export interface Stage {
  readonly run: string;
  readonly stores: readonly Store[];
  readonly hints: Hints;
  readonly hintMsMax: number;
  /** Whether a claim may be turned away though the line has fewer than `QUEUE_MAX`. */
  readonly turnsAway: boolean;
  readonly steps: number;
  /** Set at the first failure: the others stop where they are. */
  over: boolean;
}

export interface Played {
  readonly history: Entry[];
  readonly met: Met[];
  readonly wakes: Wake[];
}

const LONGEST_STEP_MS = 10_000;

/** Each connection has so many processes. */
export const PROCESSES = 2;

export function inboxOf(run: string, connection: number, process: number): string {
  return `inbox-${run}-${connection}-${process}`;
}

function castOf(stage: Stage): Actor[] {
  return stage.stores.flatMap((_, connection) =>
    Array.from({ length: PROCESSES }, (_none, index) => {
      const inbox = inboxOf(stage.run, connection, index);
      const cannotListen = connection === 0 && index === PROCESSES - 1;
      return newActor(`process-${stage.run}-${connection}-${index}`, cannotListen ? null : inbox, connection);
    }),
  );
}

function plotOf(stage: Stage, seed: number, random: Random): Plot {
  return { key: `model-${stage.run}-${seed}`, shape: random.pick(SHAPES), random, tokens: [] };
}

/** One after the other, from one process of the cast to the next. */
export async function playInTurn(stage: Stage, seed: number, played: Played): Promise<void> {
  const random = seededRandom(seed);
  const plot = plotOf(stage, seed, random);
  const cast = castOf(stage);
  let longPauses = random.chance(0.03) ? 1 : 0;
  let state: State = EMPTY_STATE;
  let now = 0;
  // Marks older than that may be dropped with the next change or before: then stores differ, and may.
  const until = systemClock.monotonicMs() + KEEP_MS - LONGEST_STEP_MS;
  while (played.history.length < stage.steps && !stage.over && systemClock.monotonicMs() < until) {
    const actor = random.pick(cast);
    const store = storeOf(stage, actor);
    if (longPauses > 0 && state.waiters.length > 0) {
      longPauses -= 1;
      await pause(WAITER_LIFE_MS + 20);
    } else {
      await pause(pauseTowards(state, now, random));
    }
    const heardBefore = stage.hints.count(plot.key);
    const commands = Array.from({ length: random.chance(0.15) ? 3 : 1 }, () => nextCommand(plot, actor));
    const wakes: Wake[] = [];
    for (const entry of await exchange(stage, store, commands)) {
      played.history.push(entry);
      hear(plot, actor, entry.command, entry.reply);
      const explained = explainNext(state, entry);
      state = explained.state;
      now = earliestOf(entry.reply);
      played.met.push(...explained.met);
      wakes.push(...explained.wakes);
    }
    played.wakes.push(...wakes);
    if (store.traits.push) await stage.hints.all(plot.key, wakes, heardBefore, stage.hintMsMax);
    if (random.chance(0.1)) await compareView(store, plot.key, state);
  }
  assert.deepEqual(stage.hints.strays(plot.key, played.wakes), [], 'hints came that decide does not send');
}

/** All processes of the cast at once, each at its own pace. */
export async function playAsCrowd(stage: Stage, seed: number, played: Played): Promise<void> {
  const plot = plotOf(stage, seed, seededRandom(seed));
  const seen = { decision: 0 };
  const cast = castOf(stage);
  await Promise.all(
    cast.map(async (actor, index) => {
      const own: Plot = { ...plot, random: seededRandom(seed * 31 + index) };
      const store = storeOf(stage, actor);
      for (let said = 0; said < stage.steps / cast.length && !stage.over; said++) {
        await pause(paceOf(own.random, played.history.at(-1)?.reply));
        const after = seen.decision;
        for (const entry of await exchange(stage, store, [nextCommand(own, actor)])) {
          const { command, reply } = entry;
          played.history.push(entry);
          hear(own, actor, command, reply);
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
  await stage.hints.all(plot.key, explained.wakes, 0, stage.hintMsMax);
  assert.deepEqual(stage.hints.strays(plot.key, explained.wakes), [], 'hints came that decide does not send');
}

function storeOf(stage: Stage, actor: Actor): Store {
  const store = stage.stores[actor.connection];
  assert.ok(store);
  return store;
}

/** A claim that was kept out of the line was decided as one that does not queue. */
async function exchange(
  { turnsAway }: Stage,
  store: Store,
  commands: readonly Command[],
): Promise<readonly Entry[]> {
  const replies = await Promise.all(store.apply(commands));
  assert.equal(replies.length, commands.length, 'apply must return one promise a command');
  return commands.map((said, index) => {
    const reply = replies[index] as Reply;
    if (said.kind !== 'claim') return { command: said, reply };
    const isTurnedAway = turnsAway && reply.kind === 'busy' && reply.position === null;
    const queue = said.queue && store.traits.queue && !isTurnedAway;
    return { command: { ...said, queue }, reply };
  });
}

/** A crowd does not know the state; the last reply says roughly when something ends. */
function paceOf(random: Random, last: Reply | undefined): number {
  const dice = random.next();
  if (dice < 0.35) return 0;
  if (dice < 0.45) return random.between(1, 15);
  if (dice < 0.55) return random.between(450, 520);
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
