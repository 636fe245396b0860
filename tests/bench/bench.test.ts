/** The benchmark still runs, against every peer, and reports what it should. Never whether it is fast. */
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { available } from 'holdfast-test-servers';
import { describe, expect, test } from 'vitest';
import { isLongRun } from '../long-run.js';

const BENCH = fileURLToPath(new URL('../../bench/run.js', import.meta.url));
const PAGE = fileURLToPath(new URL('../../docs/benchmarks.md', import.meta.url));
const LIMIT_MS = 240_000;
const run = promisify(execFile);

interface Outcome {
  readonly contender: string;
  readonly emulator: boolean;
  readonly workload: string;
  readonly figures: Readonly<Record<string, number>>;
}

interface Report {
  readonly outcomes: readonly Outcome[];
  readonly verdicts: readonly { readonly what: string }[];
  readonly failures: readonly string[];
}

const LOCAL = ['contended', 'held', 'idle', 'in-flight', 'sequential'];
const FRESH = ['fresh', 'fresh-in-flight'];
const POLLED = ['across', 'contended', 'idle', 'in-flight', 'killed', 'sequential'];
const PUSHED = ['across', 'contended', 'handover', 'idle', 'in-flight', 'killed', 'sequential'];
const WORKLOADS = {
  memory: ['contended', ...FRESH, 'held', 'idle', 'in-flight', 'sequential'],
  sqlite: ['across', ...LOCAL],
  redis: ['across', 'contended', ...FRESH, 'handover', 'held', 'idle', 'in-flight', 'killed', 'sequential'],
  postgres: [
    'across',
    'contended',
    ...FRESH,
    'granted',
    'handover',
    'held',
    'idle',
    'in-flight',
    'killed',
    'many-keys',
    'refused',
    'sequential',
  ],
  'distributed-locks': ['across', 'contended', 'in-flight', 'sequential'],
  'lock-service-central': ['across', 'contended', 'in-flight', 'sequential'],
  mysql: POLLED,
  dynamodb: POLLED,
  firestore: PUSHED,
  quorum: PUSHED,
  nats: PUSHED,
  etcd: PUSHED,
} as const;

/** A run that failed exits with 1 and says in the report which it was. */
async function quick(...options: readonly string[]): Promise<Report> {
  const limits = { timeout: LIMIT_MS, maxBuffer: 16 * 2 ** 20 };
  const { stdout } = await run(process.execPath, [BENCH, '--quick', '--json', ...options], limits).catch(
    (error: { readonly code: unknown; readonly stdout: string }) => {
      if (error.code !== 1 || error.stdout === '') throw error;
      return error;
    },
  );
  return JSON.parse(stdout) as Report;
}

function callsOf({ outcomes }: Report, contender: string): number | undefined {
  return outcomes.find((one) => one.contender === contender && one.workload === 'sequential')?.figures
    .callsPerCycle;
}

function checkSubject({ outcomes, failures }: Report, engine: keyof typeof WORKLOADS): void {
  expect(failures).toEqual([]);
  const own = outcomes.filter(({ contender }) => contender === `holdfast-${engine}`);
  expect(own.map(({ workload }) => workload).sort()).toEqual(WORKLOADS[engine]);
  for (const { figures } of own) {
    expect(Object.values(figures)).toSatisfy((values: readonly number[]) => values.every(Number.isFinite));
    expect(figures.overlaps ?? 0).toBe(0);
  }
}

describe.runIf(isLongRun)('a quick benchmark runs every workload and keeps exclusion', () => {
  test.for(['memory', 'sqlite'] as const)('on %s', { timeout: LIMIT_MS + 10_000 }, async (engine) => {
    checkSubject(await quick('--only', `${engine}/`), engine);
  });

  test.runIf(available('redis'))('on Redis', { timeout: LIMIT_MS + 10_000 }, async () => {
    const report = await quick('--only', 'redis/');
    checkSubject(report, 'redis');
    expect(callsOf(report, 'minimum-redis'), 'round trips of the hand-written minimum').toBe(2);
  });

  test.runIf(available('postgres-15'))('on PostgreSQL', { timeout: LIMIT_MS + 10_000 }, async () => {
    checkSubject(await quick('--only', 'postgres/'), 'postgres');
  });

  test.runIf(available('mariadb', { own: true }))('on MariaDB', { timeout: LIMIT_MS + 10_000 }, async () => {
    const report = await quick('--only', 'mysql/');
    checkSubject(report, 'mysql');
    expect(callsOf(report, 'minimum-mysql'), 'round trips of the hand-written minimum').toBe(2);
  });

  test.runIf(available('dynamodb', { own: true }))(
    'on DynamoDB Local, whose figures are called an emulator’s wherever they stand',
    { timeout: LIMIT_MS + 10_000 },
    async () => {
      const report = await quick('--only', 'dynamodb/');
      checkSubject(report, 'dynamodb');
      expect(report.outcomes.every(({ emulator }) => emulator)).toBe(true);
      expect(report.verdicts.length).toBeGreaterThan(0);
      expect(report.verdicts.filter(({ what }) => !what.endsWith('(emulator)'))).toEqual([]);
      for (const contender of ['minimum-dynamodb', 'dynamodb-lock-client']) {
        expect(callsOf(report, contender), `round trips of ${contender}`).toBe(2);
      }
    },
  );

  test.runIf(available('firestore', { own: true }))(
    'on the Firestore emulator, whose figures are called an emulator’s, too',
    { timeout: LIMIT_MS + 10_000 },
    async () => {
      const report = await quick('--only', 'firestore/');
      checkSubject(report, 'firestore');
      expect(report.verdicts.filter(({ what }) => !what.endsWith('(emulator)'))).toEqual([]);
      expect(callsOf(report, 'minimum-firestore'), 'round trips of the hand-written minimum').toBe(2);
    },
  );

  test.runIf(available('redis', { own: true }))(
    'on a quorum of three Redis servers, where a command to all of them counts as three',
    { timeout: LIMIT_MS + 10_000 },
    async () => {
      const report = await quick('--only', 'quorum/');
      checkSubject(report, 'quorum');
      // The slowest of the three may not have been asked yet when the last cycle ends.
      const calls = callsOf(report, 'minimum-quorum');
      expect(calls, 'round trips of the hand-written minimum').toBeGreaterThan(4);
      expect(calls, 'round trips of the hand-written minimum').toBeLessThanOrEqual(6);
    },
  );

  test.runIf(available('postgres-15')).for(['distributed-locks', 'lock-service-central'] as const)(
    'on PostgreSQL in the table of other software: %s',
    { timeout: LIMIT_MS + 10_000 },
    async (engine) => {
      const report = await quick('--only', `${engine}/`);
      checkSubject(report, engine);
      expect(callsOf(report, `minimum-${engine}`), 'round trips of the hand-written minimum').toBe(2);
    },
  );

  test.runIf(available('nats', { own: true }))('on NATS', { timeout: LIMIT_MS + 10_000 }, async () => {
    const report = await quick('--only', 'nats/');
    checkSubject(report, 'nats');
    expect(report.outcomes.some(({ emulator }) => emulator)).toBe(false);
    expect(callsOf(report, 'minimum-nats'), 'round trips of the hand-written minimum').toBe(2);
    // The first cycle of a process also looks at the bucket and asks for the time.
    expect(callsOf(report, 'holdfast-nats'), 'round trips').toBeLessThan(4);
  });

  test.runIf(available('etcd', { own: true }))('on etcd', { timeout: LIMIT_MS + 10_000 }, async () => {
    const report = await quick('--only', 'etcd/');
    checkSubject(report, 'etcd');
    expect(callsOf(report, 'minimum-etcd'), 'round trips of the hand-written minimum').toBe(2);
    // The first cycle of a process also compares the clocks and makes an etcd lease.
    expect(callsOf(report, 'holdfast-etcd'), 'round trips').toBeLessThan(6);
  });
});

test.runIf(isLongRun).for([
  ['service', 'service-v2', 'bare-fastify', 'fastify-with-access'],
  ['redis-served', 'service-redis'],
  ['postgres-served', 'service-postgres'],
  ['http', 'holdfast-http', 'minimum-http'],
] as const)(
  'a quick benchmark runs %s, alone and with 64 in flight',
  { timeout: LIMIT_MS + 10_000 },
  async ([engine, ...contenders]) => {
    const { outcomes, failures } = await quick('--only', `${engine}/`);
    expect(failures).toEqual([]);
    const ran = outcomes.map(({ workload, contender }) => `${workload} ${contender}`);
    const meant = ['sequential', 'in-flight'].flatMap((workload) =>
      contenders.map((contender) => `${workload} ${contender}`),
    );
    expect(ran.sort()).toEqual(meant.sort());
  },
);

test.skipIf(isLongRun)(
  'a run draws its chart and fills its page, and says of every target whether it was reached',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-test-'));
    try {
      const chart = join(folder, 'chart.svg');
      const page = join(folder, 'page.md');
      await copyFile(PAGE, page);
      const { verdicts } = await quick('--only', 'memory/sequential', '--svg', chart, '--page', page);
      expect(verdicts.map(({ what }) => what)).toContain('holdfast-memory against verrou, sequential');
      expect(await readFile(chart, 'utf8')).toMatch(/^<svg [\s\S]*<\/svg>\n$/);
      expect(await readFile(page, 'utf8')).toContain('### Targets');
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
  LIMIT_MS + 10_000,
);

test.skipIf(isLongRun)('a filter that fits no run is refused in one line', async () => {
  await expect(run(process.execPath, [BENCH, '--only', 'nothing-like-it'])).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^No run has "nothing-like-it" in its name[^\n]*\n$/),
  });
});
