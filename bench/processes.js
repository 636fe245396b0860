/** The processes that are measured: one a run, or several that meet, whose answers are put together. */
import { fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { jainIndex, quantile } from './figures.js';
import { counterOf, makeCounter } from './shared-counter.js';
import { monotonicMs } from './workloads/handover.js';

/** @typedef {import('./types.d.ts').Answer} Answer */
/** @typedef {import('./types.d.ts').Figures} Figures */
/** @typedef {import('./types.d.ts').Task} Task */

const RUN_MS_MAX = 120_000;
const START_TOGETHER_MS = 500;

/** @param {Task} task */
function startChild(task) {
  const child = fork(new URL('./child.js', import.meta.url), [JSON.stringify(task)], {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let complaint = '';
  child.stderr?.on('data', (chunk) => {
    complaint += chunk;
  });
  /** The keys whose leases it lost, and until when it had them. @type {Map<string, number>} */
  const lost = new Map();
  const limit = setTimeout(() => child.kill('SIGKILL'), RUN_MS_MAX);
  /** @type {Promise<Answer>} */
  const done = new Promise((resolve, reject) => {
    /** @type {Answer | undefined} */
    let answer;
    child.on('message', (message) => {
      if (message === 'ready') return;
      const told = /** @type {Answer | { readonly lost: string, readonly untilMs: number }} */ (message);
      if ('lost' in told) lost.set(told.lost, told.untilMs);
      else answer = told;
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(limit);
      const why = complaint.trim().split('\n').slice(0, 8).join(' | ');
      if (answer && code === 0) resolve(answer);
      else reject(new Error(`ended with ${signal ?? code}: ${why}`));
    });
  });
  /** @type {Promise<void>} */
  const ready = new Promise((resolve, reject) => {
    child.on('message', (message) => message === 'ready' && resolve());
    done.catch(reject);
  });
  for (const told of [ready, done]) told.catch(() => 'told to whoever awaits it');
  return { ready, done, lost, kill: () => child.kill('SIGKILL') };
}

/** @param {Omit<Task, 'startAt'>} task @returns {Promise<Figures>} */
export async function measureOnce(task) {
  switch (task.workload) {
    case 'across':
      return meetAtOneKey(task);
    case 'handover':
      return handOver(task);
    case 'killed':
      return killHolders(task);
    default:
      return (await startChild({ ...task, startAt: 0 }).done).figures;
  }
}

/** @param {Omit<Task, 'startAt'>} task */
function runTogether(task) {
  const startAt = Date.now() + START_TOGETHER_MS;
  return Promise.all(
    Array.from({ length: task.sizes.processes }, () => startChild({ ...task, startAt }).done),
  );
}

/** @param {Omit<Task, 'startAt'>} task @returns {Promise<Figures>} */
async function meetAtOneKey(task) {
  makeCounter(task.folder);
  const answers = await runTogether(task);
  const sum = (/** @type {string} */ name) =>
    answers.reduce((total, { figures }) => total + (figures[name] ?? 0), 0);
  return {
    cyclesPerSecond: sum('cyclesPerSecond'),
    jain: jainIndex(answers.flatMap(({ counts = [] }) => counts)),
    cpuShare: sum('cpuShare'),
    overlaps: sum('counted') - (await counterOf(task.folder)),
    refusedReleases: sum('refusedReleases'),
  };
}

/** From the end of one's work to the turn of another, who was waiting then. @param {Omit<Task, 'startAt'>} task @returns {Promise<Figures>} */
async function handOver(task) {
  const answers = await runTogether(task);
  const turns = answers
    .flatMap(({ turns = [] }, process) => turns.map((turn) => ({ ...turn, process })))
    .sort((a, b) => a.grantedAt - b.grantedAt);
  let overlaps = 0;
  /** @type {number[]} */
  const timesMs = [];
  for (const [index, turn] of turns.entries()) {
    const before = turns[index - 1];
    if (!before) continue;
    if (turn.grantedAt < before.releasedAt) overlaps += 1;
    if (turn.process === before.process || turn.askedAt > before.releasedAt) continue;
    timesMs.push(turn.grantedAt - before.releasedAt);
  }
  return {
    p50Ms: quantile(timesMs, 0.5),
    p99Ms: quantile(timesMs, 0.99),
    handovers: timesMs.length,
    overlaps,
  };
}

/** From the kill of the holder to the turn of the one who waits. @param {Omit<Task, 'startAt'>} task @returns {Promise<Figures>} */
async function killHolders(task) {
  const { trials, killedTtlMs, processes } = task.sizes;
  const keysOf = Array.from({ length: processes }, (_, victim) =>
    Array.from({ length: Math.ceil(trials / processes) }, (_, index) => `killed-${victim}-${index}`),
  );
  const holders = keysOf.map((keys) => startChild({ ...task, startAt: 0, part: 'holder', keys }));
  try {
    await Promise.all(holders.map(({ ready }) => ready));
    const waiter = startChild({ ...task, startAt: 0, part: 'waiter', keys: keysOf.flat() });
    await waiter.ready;
    /** @type {number[]} */
    const killedAt = [];
    for (const { kill } of holders) {
      await sleep(killedTtlMs / 3 / processes);
      killedAt.push(monotonicMs());
      kill();
    }
    const { turns = [] } = await waiter.done;
    const waits = keysOf.flatMap((keys, victim) =>
      keys.map((key, index) => {
        const grantedAt = turns[victim * keys.length + index]?.grantedAt ?? Number.NaN;
        const lostAt = holders[victim]?.lost.get(key);
        return { ms: grantedAt - (lostAt ?? killedAt[victim] ?? 0), isLost: lostAt !== undefined };
      }),
    );
    const timesMs = waits.flatMap(({ ms, isLost }) => (isLost ? [] : ms));
    return {
      p50Ms: quantile(timesMs, 0.5),
      p99Ms: quantile(timesMs, 0.99),
      ttlMs: killedTtlMs,
      trials: timesMs.length,
      overlaps: waits.filter(({ ms }) => ms < 0).length,
    };
  } finally {
    for (const { kill } of holders) kill();
  }
}
