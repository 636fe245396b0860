import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { descendantsOf } from '../src/run/child.js';
import { foregroundOf, statusOfSignal, unlessAborted } from '../src/run/signals.js';

describe('the foreground', () => {
  it('is read from the process table, whatever the process is called', () => {
    const line = (group: number, terminal: number, foreground: number) =>
      `42 (a) b (c) S 1 ${group} 7 ${terminal} ${foreground} 4194304 0`;
    expect(foregroundOf(line(42, 34816, 42))).toBe(true);
    expect(foregroundOf(line(42, 34816, 43))).toBe(false);
    expect(foregroundOf(line(42, 0, -1))).toBe(false);
  });
});

describe('statuses of signals', () => {
  it('are those of a shell', () => {
    expect(statusOfSignal('SIGINT')).toBe(130);
    expect(statusOfSignal('SIGKILL')).toBe(137);
    expect(statusOfSignal('SIGTERM')).toBe(143);
  });
});

describe('work that may be broken off', () => {
  it('is as it is without a signal, and rejects with the reason after one', async () => {
    const stopping = new AbortController();
    await expect(unlessAborted(Promise.resolve(1), stopping.signal)).resolves.toBe(1);
    const hung = unlessAborted(new Promise(() => undefined), stopping.signal);
    stopping.abort(new Error('enough'));
    await expect(hung).rejects.toThrow('enough');
    await expect(unlessAborted(new Promise(() => undefined), stopping.signal)).rejects.toThrow('enough');
  });
});

describe.runIf(process.platform === 'linux')('the processes under a process', () => {
  it('are found through every generation', async () => {
    const script = 'sh -c "sleep 60 & echo \\$!; wait" & wait';
    const child = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    const pid = child.pid ?? 0;
    const [text] = await once(child.stdout, 'data');
    const sleeper = Number(String(text));
    const found = descendantsOf(pid);
    expect(found).toContain(sleeper);
    expect(found).not.toContain(process.pid);
    for (const each of [pid, ...found]) process.kill(each, 'SIGKILL');
    await once(child, 'exit');
  });
});
