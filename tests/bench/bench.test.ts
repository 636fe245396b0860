/** The benchmark still runs, against every peer, and reports what it should. Never whether it is fast. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const BENCH = fileURLToPath(new URL('../../bench/run.js', import.meta.url));
const LIMIT_MS = 240_000;
const run = promisify(execFile);

interface Outcome {
  readonly contender: string;
  readonly workload: string;
  readonly figures: Readonly<Record<string, number>>;
}

test(
  'a quick benchmark runs every workload, keeps exclusion, and draws its chart',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-test-'));
    try {
      const chart = join(folder, 'chart.svg');
      const { stdout } = await run(process.execPath, [BENCH, '--quick', '--json', '--svg', chart], {
        timeout: LIMIT_MS,
        maxBuffer: 16 * 2 ** 20,
      });
      const { outcomes, failures, verdicts } = JSON.parse(stdout);
      expect(failures).toEqual([]);
      expect(verdicts.length).toBeGreaterThan(10);
      const own = (outcomes as readonly Outcome[]).filter(({ contender }) =>
        contender.startsWith('holdfast-'),
      );
      const workloads = [...new Set(own.map(({ workload }) => workload))].sort();
      expect(workloads).toEqual(['across', 'contended', 'held', 'idle', 'in-flight', 'sequential']);
      for (const { workload, figures } of own) {
        if ('cyclesPerSecond' in figures) expect(figures.cyclesPerSecond).toSatisfy(Number.isFinite);
        if (workload === 'contended') expect(figures.overlaps).toBe(0);
      }
      expect(await readFile(chart, 'utf8')).toMatch(/^<svg [\s\S]*<\/svg>\n$/);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
  LIMIT_MS + 10_000,
);

test('a filter that fits no run is refused', async () => {
  await expect(run(process.execPath, [BENCH, '--only', 'nothing-like-it'])).rejects.toMatchObject({
    code: 1,
  });
});
