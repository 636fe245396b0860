import { defineConfig } from 'vitest/config';

/** What `npm run check` runs: no server, no other process to wait for. */
const rules = 'tests/repository/rules/**/*.test.ts';

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
          exclude: [rules, '**/node_modules/**'],
        },
      },
    ],
  },
});
