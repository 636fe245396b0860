/** The kit has to be able to fail: every planted bug is caught by the simulation, within a few seeds. */
import { describe, expect, it } from 'vitest';
import { simulateWith } from './plant.ts';
import { HARMLESS, PLANTED_BUGS } from './planted-bugs.ts';
import { PLANTED_QUORUM_BUGS } from './planted-quorum-bugs.ts';

const CAUGHT_MS_MAX = 120_000;
const BUGS = [...PLANTED_BUGS, ...PLANTED_QUORUM_BUGS];

describe('the simulation', () => {
  it(
    `finds nothing wrong with ${HARMLESS.name}`,
    async () => {
      const { exitCode, output } = await simulateWith(HARMLESS);
      expect(exitCode, output).toBe(0);
    },
    CAUGHT_MS_MAX,
  );

  for (const bug of BUGS) {
    it(
      `catches: ${bug.name}`,
      async () => {
        const { exitCode, output } = await simulateWith(bug);
        expect(exitCode, output).toBe(1);
        expect(output).toMatch(new RegExp(`^  (?:${bug.shows.join('|')}) at [\\d.]+ ms:`, 'm'));
      },
      CAUGHT_MS_MAX,
    );
  }
});
