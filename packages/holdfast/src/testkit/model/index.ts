/**
 * The model-based test: random commands from a seed go to the store and to `decide`. Replies, tokens, views and wake-ups
 * must be equal. Sequences run concurrently, so that their pauses overlap.
 */
import { systemClock } from '../../clock.js';
import type { Store } from '../../protocol/index.js';
import { type Harness, HINT_MS_MAX } from '../harness.js';
import type { Entry } from './history.js';
import { SHAPES } from './script.js';
import {
  inboxOf,
  type ModelRun,
  PROCESSES,
  runConcurrently,
  runInTurn,
  type SequenceResult,
} from './sequence.js';
import { WakeUps } from './wake-ups.js';

/** Options of a run of the model. */
export interface ModelOptions {
  /** Opens the store under test. */
  readonly harness: Harness;
  /** Repeats a run. Default: random. */
  readonly seed?: number;
  /** How many keys. The seed of the nth is `seed + n`; every fourth key has concurrent processes. Default 200. */
  readonly sequences?: number;
  /** Commands per key. Default 40. */
  readonly steps?: number;
  /** How many keys at once. Default 250. */
  readonly atOnce?: number;
}

/** The result of a run of the model. */
export interface ModelReport {
  readonly seed: number;
  readonly sequences: number;
  readonly steps: number;
  /** Steps that met an expiry, a window's end or an ended hold. */
  readonly interesting: number;
  /** Wake-ups that `decide` sends; each arrived, where the store can push. */
  readonly hints: number;
}

const CONNECTIONS = 3;

/** Rejects at the first difference, with the seed that repeats it. */
export async function runModel(options: ModelOptions): Promise<ModelReport> {
  const { harness, sequences = 200, steps = 40, atOnce = 250 } = options;
  const seed = options.seed ?? Math.floor(systemClock.random() * 2 ** 31);
  const stores: Store[] = [];
  const stage: ModelRun = {
    run: systemClock.randomId(),
    stores,
    hints: new WakeUps(),
    hintMsMax: harness.hintMsMax ?? HINT_MS_MAX,
    turnsAway: harness.lineMax !== undefined,
    steps,
    shapes: harness.exclusive ? ['mutex'] : SHAPES,
    over: false,
  };
  const all: SequenceResult[] = [];
  try {
    for (let connection = 0; connection < CONNECTIONS; connection++) {
      const store = await harness.open();
      stores.push(store);
      for (let process = 0; process < PROCESSES; process++) {
        await stage.hints.listen(store, inboxOf(stage.run, connection, process));
      }
    }
    let next = seed;
    const last = seed + sequences;
    const worker = async (): Promise<void> => {
      while (next < last && !stage.over) all.push(await playOne(harness, stage, next++));
    };
    await settleAll(Array.from({ length: Math.min(atOnce, sequences) }, worker));
  } finally {
    await stage.hints.stop();
    await Promise.all(stores.map((store) => store.close()));
  }
  return reportOf(seed, all);
}

/** Waits for all, so that nothing runs when the stores close; then rejects with the first error. */
async function settleAll(work: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(work)).find((result) => result.status === 'rejected');
  if (failed) throw failed.reason;
}

async function playOne(harness: Harness, stage: ModelRun, seed: number): Promise<SequenceResult> {
  const played: SequenceResult = { history: [], met: [], wakes: [] };
  const crowd = seed % 4 === 3;
  try {
    await (crowd ? runConcurrently : runInTurn)(stage, seed, played);
    return played;
  } catch (cause) {
    stage.over = true;
    const what = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      `The store "${harness.name}" and decide disagree after ${played.history.length} commands ` +
        `(${crowd ? 'a crowd' : 'in turn'}): ${what}\n` +
        `Replay: runModel({ harness, seed: ${seed}, sequences: 1, steps: ${stage.steps} })\n` +
        `The last commands:\n${lastOf(played.history)}`,
      { cause },
    );
  }
}

function lastOf(history: readonly Entry[]): string {
  const line = ({ command, reply }: Entry): string =>
    `  ${JSON.stringify(command)}\n    → ${JSON.stringify(reply)}`;
  return history.slice(-6).map(line).join('\n');
}

function reportOf(seed: number, all: readonly SequenceResult[]): ModelReport {
  const met = all.flatMap((played) => played.met);
  return {
    seed,
    sequences: all.length,
    steps: met.length,
    interesting: met.filter(Boolean).length,
    hints: all.reduce((sum, { wakes }) => sum + wakes.length, 0),
  };
}
