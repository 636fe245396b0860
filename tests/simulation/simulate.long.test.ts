/** `npm run simulate` as a command. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const COMMAND = fileURLToPath(new URL('./run.js', import.meta.url));
const RUN_MS_MAX = 60_000;

function simulate(...args: string[]): Promise<{ code: number | null; text: string }> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [COMMAND, ...args],
      { timeout: RUN_MS_MAX },
      (_, stdout, stderr) => {
        resolve({ code: child.exitCode, text: stdout + stderr });
      },
    );
  });
}

describe('npm run simulate', () => {
  it('replays a seed: two processes see the same history', { timeout: RUN_MS_MAX }, async () => {
    const args = ['--profile', 'evictions', '--seed', '77', '--digest'];
    const [first, second] = await Promise.all([simulate(...args), simulate(...args)]);
    const digest = /evictions: .* \.([0-9a-f]{8})$/m;
    expect(first.code, first.text).toBe(0);
    expect(digest.exec(first.text)?.[1]).toBeDefined();
    expect(digest.exec(second.text)?.[1]).toBe(digest.exec(first.text)?.[1]);
  });

  it('says what it can do, and what is wrong with its arguments', async () => {
    const help = await simulate('--help');
    expect(help.code).toBe(0);
    expect(help.text).toContain('--seeds N');
    const wrong = await simulate('--seeds', 'many');
    expect(wrong.code).toBe(2);
    const unknown = await simulate('--sedes', '5');
    expect(unknown.code).toBe(2);
    expect(unknown.text).not.toContain('    at ');
  });
});
