import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Run by `npm run check`: needs no server and no other process. */
const rules = 'tests/repository/rules/**/*.test.ts';
/** Run by `npm run test:long`: what only time or many processes can show. */
const long = '**/*.long.test.ts';

/** Files that take longest. Started last, one of them would run alone at the end. */
const SLOW = /conformance|bench|fuzz|handoff|documents|planted|serve\.|dashboard|event-loop|faults-|crowd/;

class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isSlow = ({ moduleId }: TestSpecification): boolean => SLOW.test(moduleId);
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
  }
}

export default defineConfig({
  // The kind that Nest has.
  oxc: { decorator: { legacy: true } },
  test: {
    pool: 'forks',
    // The packages as they are built: transformed by vitest, every name that they import would be looked up at each use.
    server: { deps: { external: [/\/packages\/[^/]+\/dist\//] } },
    // A worker keeps its modules from file to file: loading and compiling them again takes a third of the processor's time.
    isolate: false,
    // Most of the time they wait for servers, and for leases to end.
    maxWorkers: 6,
    sequence: { sequencer: SlowFirst },
    // A limit for what hangs, not a measure: a busy machine takes many times as long as an idle one.
    testTimeout: 120_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    projects: [
      { extends: true, test: { name: 'rules', include: [rules] } },
      {
        extends: true,
        test: {
          name: 'behaviour',
          globalSetup: 'tests/servers/global-setup.ts',
          include: ['packages/*/test/**/*.test.ts', 'tests/**/*.test.ts'],
          exclude: [rules, long, '**/node_modules/**'],
        },
      },
      {
        extends: true,
        test: {
          name: 'long',
          globalSetup: 'tests/servers/global-setup.ts',
          include: [long],
          env: { HOLDFAST_LONG_RUN: 'yes' },
          testTimeout: 300_000,
          // Crowds of processes and benchmarks: more side by side would measure the machine.
          maxWorkers: 2,
          // After the short ones, where a path names both: projects with other numbers of workers cannot run together.
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
