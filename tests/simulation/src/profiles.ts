/** The profiles. Each looks for what the others hardly show. */
import type { Behaviour, Bounds, KeySpec, Profile } from './profile.js';

const BEHAVIOUR: Behaviour = {
  thinkMs: [1, 300],
  workMs: [0.2, 60],
  ttlMs: [400, 1_000, 1_000, 3_000],
  waitMs: [50, 1_000, 5_000, 20_000],
  tryShare: 0.2,
  abortShare: 0.05,
  minHoldShare: 0.03,
  metadataShare: 0.05,
  noRenewShare: 0.05,
  renewShare: 0.05,
  stretch: [1, 2],
  overstayShare: 0,
  handoffShare: 0,
  maxHoldShare: 0,
  maxHold: [0.5, 4],
  nestedShare: 0,
  groupShare: 0,
  writeShare: 0.3,
};

const NETWORK = { latencyMs: [0.2, 4], faultShare: 0.065, lateMs: [10, 4_000] } as const;
const BOUNDS: Bounds = {
  waitMs: 15_000,
  meanWaitMs: 1_000,
  idleMs: 400,
  idleMsWorst: 4_000,
  idleShare: 0.02,
};
const QUEUE_AND_PUSH = { queue: true, push: true } as const;

/** What `TimeEstimate` allows for: with a faster or slower clock, no time can be estimated. */
const QUORUM_DRIFT_SHARE = 0.000_4;

const mutex = (name: string, weight = 1): KeySpec => ({ name, kind: 'mutex', weight });
const semaphore = (name: string, capacity: number, weight = 1): KeySpec => {
  return { name, kind: 'semaphore', capacity, weight };
};
const readWrite = (name: string, weight = 1): KeySpec => ({ name, kind: 'readWrite', weight });

const MIXED: Profile = {
  name: 'mixed',
  about: 'a bit of everything, and keys so rare that their records are cleaned up',
  durationMs: 90_000,
  variant: QUEUE_AND_PUSH,
  keys: [
    mutex('mutex-a', 3),
    mutex('mutex-b', 2),
    semaphore('semaphore-a', 3),
    readWrite('library-a'),
    mutex('rare-a', 0.004),
    mutex('rare-b', 0.004),
    semaphore('rare-c', 2, 0.004),
  ],
  workloads: [{ processes: 4, workers: 4, behaviour: { ...BEHAVIOUR, groupShare: 0.03 } }],
  network: NETWORK,
  faultIntervals: {
    pauseMs: 10_000,
    crashMs: 30_000,
    restartMs: 30_000,
    lagMs: 20_000,
    cutMs: 15_000,
    clockJumpMs: 20_000,
    evictionMs: 30_000,
    lastMs: [20, 5_000],
  },
  bounds: BOUNDS,
  alike: false,
};

const CUT_OFF: Profile = {
  name: 'cut-off',
  about: 'work longer than the ttl, and links that are cut off again and again',
  durationMs: 200_000,
  variant: QUEUE_AND_PUSH,
  keys: [mutex('mutex-a'), mutex('mutex-b'), semaphore('semaphore-a', 2)],
  workloads: [
    {
      processes: 4,
      workers: 3,
      behaviour: {
        ...BEHAVIOUR,
        thinkMs: [1, 100],
        workMs: [1, 2_000],
        ttlMs: [100, 300, 600, 1_000, 2_000],
        waitMs: [5_000, 20_000],
        abortShare: 0.15,
        noRenewShare: 0.2,
        renewShare: 0.3,
        stretch: [1, 8],
        overstayShare: 0.5,
      },
    },
  ],
  network: { ...NETWORK, latencyMs: [0.5, 30], lateMs: [50, 3_000] },
  faultIntervals: { cutMs: 2_500, lagMs: 5_000, pauseMs: 20_000, suspendMs: 30_000, lastMs: [50, 2_500] },
  bounds: { ...BOUNDS, waitMs: 25_000, meanWaitMs: 3_000 },
  alike: false,
};

const SHARED: Profile = {
  name: 'shared',
  about: 'semaphores and readers, with pauses and crashes',
  durationMs: 60_000,
  variant: QUEUE_AND_PUSH,
  keys: [semaphore('semaphore-a', 3), semaphore('semaphore-b', 8), readWrite('library-a', 2)],
  workloads: [
    {
      processes: 5,
      workers: 5,
      behaviour: { ...BEHAVIOUR, thinkMs: [1, 150], workMs: [0.5, 300], ttlMs: [300, 1_000, 3_000] },
    },
  ],
  network: NETWORK,
  faultIntervals: { pauseMs: 4_000, suspendMs: 15_000, crashMs: 12_000, lastMs: [20, 4_000] },
  bounds: BOUNDS,
  alike: false,
};

const BUSY_BEHAVIOUR: Omit<Behaviour, 'thinkMs' | 'workMs'> = {
  ...BEHAVIOUR,
  ttlMs: [1_000],
  waitMs: [5_000, 20_000],
  tryShare: 0.02,
  minHoldShare: 0,
  metadataShare: 0,
  noRenewShare: 0,
  renewShare: 0,
};

const BUSY: Profile = {
  name: 'busy',
  about: 'one busy process against some that come now and then',
  durationMs: 60_000,
  variant: QUEUE_AND_PUSH,
  keys: [mutex('mutex-a', 9), mutex('mutex-b')],
  workloads: [
    {
      processes: 1,
      workers: 12,
      behaviour: { ...BUSY_BEHAVIOUR, thinkMs: [0.1, 1], workMs: [0, 1] },
    },
    {
      processes: 2,
      workers: 1,
      behaviour: { ...BUSY_BEHAVIOUR, thinkMs: [10, 2_000], workMs: [0.1, 10], tryShare: 0 },
    },
  ],
  network: NETWORK,
  faultIntervals: { pauseMs: 4_000, clockJumpMs: 60_000, lastMs: [20, 3_000] },
  bounds: { ...BOUNDS, waitMs: 4_000, meanWaitMs: 400 },
  alike: false,
};

const QUIET: Profile = {
  name: 'quiet',
  about: 'two processes in alternation, so that only a wake-up in time wakes the other',
  durationMs: 100_000,
  variant: QUEUE_AND_PUSH,
  keys: [mutex('mutex-a'), mutex('mutex-b')],
  workloads: [
    {
      processes: 2,
      workers: 2,
      behaviour: {
        ...BEHAVIOUR,
        thinkMs: [1, 60],
        workMs: [1, 60],
        ttlMs: [3_000],
        tryShare: 0,
        abortShare: 0.2,
        metadataShare: 0,
      },
    },
  ],
  network: { ...NETWORK, latencyMs: [0.2, 25], faultShare: 0.01 },
  faultIntervals: { pauseMs: 60_000, crashMs: 120_000, lastMs: [20, 1_000] },
  bounds: { ...BOUNDS, idleMs: 250, waitMs: 8_000 },
  alike: true,
};

const EVICTIONS: Profile = {
  name: 'evictions',
  about: 'operators that evict all the time',
  durationMs: 60_000,
  variant: QUEUE_AND_PUSH,
  keys: [mutex('mutex-a', 2), mutex('mutex-b', 2), semaphore('semaphore-a', 2), readWrite('library-a')],
  workloads: [
    {
      processes: 4,
      workers: 4,
      behaviour: { ...BEHAVIOUR, thinkMs: [1, 100], ttlMs: [1_000, 1_000, 5_000] },
    },
  ],
  network: NETWORK,
  faultIntervals: { evictionMs: 800, pauseMs: 20_000, cutMs: 30_000, lastMs: [20, 1_500] },
  bounds: BOUNDS,
  alike: false,
};

const HANDOFFS: Profile = {
  name: 'handoffs',
  about: 'leases handed off from process to process, with crashes, pauses and evictions meanwhile',
  durationMs: 90_000,
  variant: QUEUE_AND_PUSH,
  keys: [mutex('mutex-a', 2), mutex('mutex-b'), semaphore('semaphore-a', 3), readWrite('library-a')],
  workloads: [
    { processes: 4, workers: 3, behaviour: { ...BEHAVIOUR, ttlMs: [400, 1_000], handoffShare: 0.3 } },
  ],
  network: NETWORK,
  faultIntervals: {
    pauseMs: 10_000,
    suspendMs: 30_000,
    crashMs: 10_000,
    restartMs: 30_000,
    lagMs: 30_000,
    cutMs: 15_000,
    evictionMs: 10_000,
    lastMs: [20, 3_000],
  },
  // A lease stays locked while its handoff travels.
  bounds: { ...BOUNDS, waitMs: 25_000, meanWaitMs: 4_000 },
  alike: false,
};

const LIMITS: Profile = {
  name: 'limits',
  about: 'leases with a maxHold, work inside work under one lock, and everything that ends leases',
  durationMs: 90_000,
  variant: QUEUE_AND_PUSH,
  keys: [mutex('mutex-a', 2), mutex('mutex-b', 2), semaphore('semaphore-a', 2), readWrite('library-a')],
  workloads: [
    {
      processes: 4,
      workers: 3,
      behaviour: {
        ...BEHAVIOUR,
        ttlMs: [400, 1_000],
        maxHoldShare: 0.4,
        nestedShare: 0.4,
        handoffShare: 0.05,
      },
    },
  ],
  network: NETWORK,
  faultIntervals: {
    pauseMs: 8_000,
    suspendMs: 20_000,
    cutMs: 10_000,
    restartMs: 20_000,
    evictionMs: 4_000,
    lastMs: [20, 3_000],
  },
  bounds: { ...BOUNDS, waitMs: 25_000, meanWaitMs: 4_000 },
  alike: false,
};

const NO_PUSH: Profile = {
  ...MIXED,
  name: 'no-push',
  about: 'a store with a queue but without push',
  variant: { queue: true, push: false },
  bounds: { ...BOUNDS, idleMs: 1_000, idleShare: 0.05 },
};

const NO_QUEUE: Profile = {
  ...MIXED,
  name: 'no-queue',
  about: 'a store without queue and push',
  variant: { queue: false, push: false },
  bounds: { ...BOUNDS, waitMs: 25_000, idleMs: 1_000, idleShare: 0.05 },
};

const QUORUM: Profile = {
  ...MIXED,
  name: 'quorum',
  durationMs: 45_000,
  about: 'three servers with clocks seconds apart, each paused, down and cut off by itself',
  members: {
    count: 3,
    apartMs: 3_000,
    pauseMs: 15_000,
    crashMs: 20_000,
    cutMs: 20_000,
    lastMs: [20, 5_000],
  },
  driftShare: QUORUM_DRIFT_SHARE,
  bounds: {
    ...BOUNDS,
    waitMs: 25_000,
    meanWaitMs: 3_000,
    idleMs: 4_000,
    idleMsWorst: 20_000,
    idleShare: 0.2,
  },
};

const QUORUM_OF_FIVE: Profile = {
  ...CUT_OFF,
  name: 'quorum-of-five',
  durationMs: 100_000,
  about:
    'five servers with clocks an hour apart, work longer than the ttl, and a process with three of the servers',
  workloads: [...CUT_OFF.workloads, { processes: 1, workers: 1, servers: 3, behaviour: BEHAVIOUR }],
  members: {
    count: 5,
    apartMs: 3_600_000,
    pauseMs: 8_000,
    crashMs: 15_000,
    cutMs: 8_000,
    lastMs: [20, 5_000],
  },
  driftShare: QUORUM_DRIFT_SHARE,
  bounds: {
    ...BOUNDS,
    waitMs: 25_000,
    meanWaitMs: 10_000,
    idleMs: 60_000,
    idleMsWorst: 120_000,
    idleShare: 1,
  },
};

export const PROFILES: readonly Profile[] = [
  MIXED,
  CUT_OFF,
  SHARED,
  BUSY,
  QUIET,
  EVICTIONS,
  HANDOFFS,
  LIMITS,
  NO_PUSH,
  NO_QUEUE,
  QUORUM,
  QUORUM_OF_FIVE,
];
