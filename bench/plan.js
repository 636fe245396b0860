/** Which contender meets which workload, how long and how often. */
import { FAMILIES } from './families.js';

/** @typedef {import('./types.d.ts').WorkloadName} WorkloadName */
/** @typedef {import('./types.d.ts').Sizes} Sizes */
/** @typedef {import('./types.d.ts').Family} Family */

/** @type {Sizes} */
export const FULL = {
  repetitions: 3,
  // Long enough for the engine of the language to have compiled what runs often.
  warmUpMs: 1_000,
  warmUpCycles: 6_000,
  warmUpMsMax: 6_000,
  measureMs: 1_000,
  inFlight: 64,
  otherKeys: 1_000_000,
  ttlMs: 30_000,
  leases: 10_000,
  spreadMs: 10_000,
  heldMs: 4_000,
  waiters: 1_000,
  idleMs: 2_000,
  acrossMs: 2_000,
  handoverMs: 1_200,
  trials: 200,
  killedTtlMs: 2_000,
  processes: 4,
};

/** Shows that everything runs. Its figures mean nothing. @type {Sizes} */
export const QUICK = {
  repetitions: 1,
  warmUpMs: 50,
  warmUpCycles: 0,
  warmUpMsMax: 50,
  measureMs: 100,
  // An emulator that has just started cannot answer more on a busy machine.
  inFlight: 16,
  otherKeys: 2_000,
  ttlMs: 3_000,
  leases: 300,
  spreadMs: 300,
  heldMs: 600,
  waiters: 50,
  idleMs: 200,
  acrossMs: 100,
  // On a busy machine the processes are not all there at once.
  handoverMs: 1_000,
  trials: 20,
  // Renewed in time on a busy machine: leases that are lost before their holder is killed are not counted.
  killedTtlMs: 2_000,
  processes: 2,
};

/** On a server leases are short, for a crash of the holder to cost little: a third of what the others have. */
const SERVER_TTL_SHARE = 1 / 3;

/** An emulator is too slow to renew many short leases in time, and they would be lost before their holder is killed. */
const EMULATOR_TRIALS_SHARE = 1 / 4;
/** So few calls go by in a second that the client's code is still being compiled. */
const EMULATOR_WARM_UP = 1.5;

/** How often the peers on a server look whether a key is free. */
export const RETRY_MS = 10;

/** @param {Family} family @param {WorkloadName} workload @returns {readonly string[]} */
function contendersOf(
  { engine, subject, peers, minimums, alone, patient, holding, idling, reach, without },
  workload,
) {
  if (without.includes(workload)) return [];
  const meeting = [subject, ...peers.filter((peer) => !alone.includes(peer)), ...patient];
  switch (workload) {
    case 'sequential':
    case 'in-flight':
    case 'fresh':
    case 'fresh-in-flight':
      return [subject, ...peers, ...minimums];
    case 'many-keys':
    case 'granted':
    case 'refused':
      return engine === 'postgres' ? [subject] : [];
    case 'contended':
      return [subject, ...peers, ...patient];
    case 'across':
      return reach === 'process' ? [] : meeting;
    case 'handover':
      return reach === 'network' ? meeting : [];
    case 'held':
      return [subject, ...holding];
    case 'idle':
      return [subject, ...idling];
    case 'killed':
      return reach === 'network' ? [subject] : [];
  }
}

/** As people read them. @type {Readonly<Record<WorkloadName, string>>} */
export const LABELS = {
  sequential: 'sequential',
  'in-flight': '64 in flight',
  fresh: 'fresh keys',
  'fresh-in-flight': 'fresh keys, 64 in flight',
  'many-keys': '64 in flight, a million other keys',
  granted: 'acquired, one after the other, and kept',
  refused: 'tryAcquire of a held key, one after the other',
  contended: '16 contenders',
  across: '16 in 4 processes',
  handover: 'hand-over',
  held: 'held leases',
  idle: 'idle waiters',
  killed: 'holder killed',
};

/** @type {readonly WorkloadName[]} */
export const THROUGHPUT = [
  'sequential',
  'in-flight',
  'fresh',
  'fresh-in-flight',
  'many-keys',
  'granted',
  'refused',
  'contended',
  'across',
];
/** @type {readonly WorkloadName[]} */
const REPEATED = [...THROUGHPUT, 'handover'];
/** @type {readonly WorkloadName[]} */
const ONCE = ['held', 'idle', 'killed'];

/**
 * Repetitions are interleaved: whatever else the machine does meanwhile meets all contenders alike.
 * Holding, idling and killing are long and steady, and run once.
 * @param {Sizes} sizes
 * @param {string | undefined} only a part of `engine/workload/contender`
 * @returns {import('./types.d.ts').Planned[]}
 */
export function planOf(sizes, only) {
  const all = [];
  for (const workload of [...REPEATED, ...ONCE]) {
    const repetitions = ONCE.includes(workload) ? 1 : sizes.repetitions;
    for (let repetition = 0; repetition < repetitions; repetition++) {
      for (const family of FAMILIES) {
        const { engine, emulator } = family;
        for (const contender of contendersOf(family, workload)) {
          all.push({ engine, emulator, workload, contender, sizes: sizesFor(family, sizes) });
        }
      }
    }
  }
  return all.filter(
    ({ engine, workload, contender }) => !only || `${engine}/${workload}/${contender}`.includes(only),
  );
}

/** @param {Family} family @param {Sizes} sizes @returns {Sizes} */
export function sizesFor({ reach, emulator }, sizes) {
  if (reach !== 'network') return sizes;
  return {
    ...sizes,
    ttlMs: Math.round(sizes.ttlMs * SERVER_TTL_SHARE),
    spreadMs: Math.round(sizes.spreadMs * SERVER_TTL_SHARE),
    ...(emulator && {
      trials: Math.ceil(sizes.trials * EMULATOR_TRIALS_SHARE),
      warmUpMs: sizes.warmUpMs * EMULATOR_WARM_UP,
      acrossMs: sizes.acrossMs / 2,
    }),
  };
}
