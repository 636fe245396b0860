/** The demo, run as a user runs it but without a terminal. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const DEMO = fileURLToPath(new URL('../../examples/demo/run.js', import.meta.url));

/** By the time on the line: news of two processes may be heard, and printed, in the wrong order. */
function tokensInOrder(stdout: string): readonly number[] {
  const grants = [...stdout.matchAll(/([\d.]+) s +\w+ +(?:acquired|took over) token (\d+)/g)];
  return grants
    .map((grant) => ({ at: Number(grant[1]), token: Number(grant[2]) }))
    .sort((a, b) => a.at - b.at)
    .map(({ token }) => token);
}

test('F21: the demo shows tokens rising and a takeover after kill -9, and ends by itself', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [DEMO, '--seconds', '9'], {
    timeout: 60_000,
  });
  const tokens = tokensInOrder(stdout);
  expect(tokens.length).toBeGreaterThan(2);
  for (const [index, token] of tokens.entries()) {
    if (index > 0) expect(token).toBeGreaterThan(tokens[index - 1] ?? 0);
  }
  const killed = stdout.match(/(\w+) +killed with kill -9 while holding token (\d+)/);
  const after = stdout.match(/(\w+) +took over token (\d+), (\d+) ms after (\w+) was killed/);
  expect(killed?.[1]).toBe(after?.[4]);
  expect(after?.[1]).not.toBe(killed?.[1]);
  expect(Number(after?.[2])).toBeGreaterThan(Number(killed?.[2]));
  // The ttl is 30 s: anything far below shows that the dead holder was noticed, not waited for.
  expect(Number(after?.[3])).toBeLessThan(5_000);
  expect(stdout).not.toContain('\x1b');
  expect(stdout).toContain('Two holders at once: never.');
});

test('the demo refuses a duration in which nothing could be seen', async () => {
  const run = promisify(execFile)(process.execPath, [DEMO, '--seconds', '0'], { timeout: 25_000 });
  await expect(run).rejects.toMatchObject({ code: 2 });
});
