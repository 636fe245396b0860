import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { available } from 'holdfast-test-servers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { childrenOf, expectGone, isAlive, isLinux } from './processes.js';

const starter = fileURLToPath(new URL('starter.js', import.meta.url));
const hasSetpriv = isLinux && existsSync('/usr/bin/setpriv');

const SERVERS = ['redis', 'postgres', 'nats', 'dynamodb'] as const;
const installed = SERVERS.filter((server) => available(server, { own: true }));

interface Started {
  readonly pids: readonly number[];
  readonly kill: () => void;
  readonly exited: Promise<unknown>;
}

async function start(how: 'stay' | 'pause' | 'leave', env: NodeJS.ProcessEnv = {}): Promise<Started> {
  const child = spawn(process.execPath, [starter, how, ...installed], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  });
  const exited = once(child, 'exit');
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = await once(createInterface(child.stdout), 'line');
  return { pids: JSON.parse(line as string), kill: () => child.kill('SIGKILL'), exited };
}

describe.runIf(installed.includes('postgres'))('servers that nobody stopped', () => {
  it.runIf(hasSetpriv)('die with the process that started them, even if it was killed', async () => {
    const { pids, kill, exited } = await start('stay');
    expect(pids).toHaveLength(installed.length);
    expect(pids.every(isAlive)).toBe(true);
    kill();
    await exited;
    for (const pid of pids) await expectGone(pid);
  });

  it.runIf(isLinux)('die with it while they are paused, backends and all', async () => {
    const { pids, kill, exited } = await start('pause');
    const family = pids.flatMap((pid) => [pid, ...childrenOf(pid)]);
    expect(family.length).toBeGreaterThan(4);
    kill();
    await exited;
    for (const pid of family) await expectGone(pid);
  });

  it('do not keep their process from ending, and go with it, folders and all', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-orphans-'));
    // Otherwise it would be none for the user that PostgreSQL runs as, and another one would be taken.
    chmodSync(folder, 0o755);
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const { pids, exited } = await start('leave', { TMPDIR: folder, HOLDFAST_SERVERS_RUN: '' });
    expect(await exited).toEqual([0, null]);
    for (const pid of pids) await expectGone(pid);
    expect(readdirSync(folder)).toEqual([]);
  });
});
