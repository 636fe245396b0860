/** Half a run of every profile, and five whole ones in `npm run test:long`. `npm run simulate` does many more. */
import { describe, expect, it } from 'vitest';
import { isLongRun } from '../long-run.js';
import { PROFILES, type RunResult, runSimulation, simulate } from './src/index.js';

const RUN_MS_MAX = 240_000;
const SEEDS = isLongRun ? [1_002, 1_003, 1_004, 1_005, 1_006] : [1_001];
const SHARE = isLongRun ? 1 : 1 / 2;

function told({ violations }: RunResult): string {
  return violations.map(({ kind, atMs, text }) => `${kind} at ${atMs} ms: ${text}`).join('\n');
}

describe('the real engine in a simulated simulation', () => {
  const all = { grants: 0, changes: 0, messages: 0, faulty: 0, handoffs: 0 };
  /** A quorum sends each request to every member, so its runs would outweigh all others. */
  const quorums = { messages: 0, faulty: 0 };

  for (const profile of PROFILES) {
    let grants = 0;
    for (const seed of SEEDS) {
      it(`keeps its promises in "${profile.name}", seed ${seed}`, { timeout: RUN_MS_MAX }, async () => {
        const durationMs = profile.durationMs * SHARE;
        const result = await runSimulation({ profile: { ...profile, durationMs }, seed });
        expect(told(result)).toBe('');
        expect(result.grants).toBeGreaterThan(0);
        grants += result.grants;
        all.grants += result.grants;
        all.changes += result.changes;
        const sent = profile.name.startsWith('quorum') ? quorums : all;
        sent.messages += result.messages;
        sent.faulty += result.faulty;
        all.handoffs += result.handoffs;
      });
    }

    it(`saw enough grants in "${profile.name}" for that to mean something`, () => {
      expect(grants).toBeGreaterThan(300 * SHARE * SEEDS.length);
    });
  }

  it('saw the lock change process, and messages go astray, often enough for that to mean something', () => {
    expect(all.changes / all.grants).toBeGreaterThan(0.3);
    expect(all.faulty / all.messages).toBeGreaterThan(0.05);
    expect(quorums.faulty / quorums.messages).toBeGreaterThan(0.04);
    expect(all.handoffs).toBeGreaterThan(150 * SEEDS.length * SHARE);
  });

  it('repeats a run exactly with the same seed', { timeout: RUN_MS_MAX }, async () => {
    const [profile] = PROFILES;
    if (!profile) throw new Error('There is no profile.');
    const short = { ...profile, durationMs: 20_000 };
    const first = await runSimulation({ profile: short, seed: 42 });
    const second = await runSimulation({ profile: short, seed: 42 });
    const other = await runSimulation({ profile: short, seed: 43 });
    expect(second.digest).toBe(first.digest);
    expect(second.grants).toBe(first.grants);
    expect(other.digest).not.toBe(first.digest);
  });
});

describe('the simulation as a command', () => {
  const run = async (...args: string[]): Promise<{ code: number; text: string }> => {
    const parts: string[] = [];
    const code = await simulate(args, { write: (part) => parts.push(part) });
    return { code, text: parts.join('') };
  };

  it('prints a table and ends with 0 when nothing was violated', { timeout: RUN_MS_MAX }, async () => {
    const { code, text } = await run('--profile', 'busy', '--seed', '5');
    expect(text).toMatch(/^profile +runs +grants +changed process +handovers/m);
    expect(text).toMatch(/faults injected: .*message doubled \d+/);
    expect(code).toBe(0);
  });

  it('refuses a profile that it does not know', async () => {
    const { code, text } = await run('--profile', 'sunny');
    expect(code).toBe(2);
    expect(text).toContain('sunny');
  });
});
