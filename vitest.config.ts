import { defineConfig } from 'vitest/config';

/** Run by `npm run check`: needs no server and no other process. */
const rules = 'tests/repository/rules/**/*.test.ts';
/** Run by `npm run test:long`: what only time or many processes can show. */
const long = 'tests/**/*.long.test.ts';

export default defineConfig({
  test: {
    pool: 'forks',
    // Most of the time they wait for servers, and for leases to end: three take about two thirds of two cores.
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 60_000,
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
          testTimeout: 300_000,
        },
      },
    ],
  },
});
