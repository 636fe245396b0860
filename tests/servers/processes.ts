import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { Controls } from 'holdfast-test-servers';
import { expect, it } from 'vitest';

export const isLinux = existsSync('/proc/self/stat');

function statOf(pid: number): readonly string[] {
  const file = `/proc/${pid}/stat`;
  if (!existsSync(file)) return [];
  const text = readFileSync(file, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

/** `R` running, `S` sleeping, `T` stopped; undefined if it is gone. */
export function letterOf(pid: number): string | undefined {
  const [letter] = statOf(pid);
  return letter === 'Z' || letter === 'X' ? undefined : letter;
}

export function childrenOf(pid: number): readonly number[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return all.map(Number).filter((each) => statOf(each)[1] === String(pid));
}

/** Without a signal that would tell it: asks whether it could be sent one. */
export function isAlive(pid: number): boolean {
  if (isLinux) return letterOf(pid) !== undefined;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}

export async function expectGone(pid: number): Promise<void> {
  await expect.poll(() => isAlive(pid), { message: `process ${pid} lives` }).toBe(false);
}

export function accepts({ host, port }: { readonly host: string; readonly port: number }): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** What it gives within a time that is long for an answer on loopback. */
export async function within<Value>(ms: number, promise: Promise<Value>): Promise<Value | 'no answer'> {
  const late = new Promise<'no answer'>((resolve) => setTimeout(() => resolve('no answer'), ms));
  return Promise.race([promise, late]);
}

const MANY = 8;

export function itIsLikeAllServers(start: () => Promise<Controls>): void {
  it('stops while it is paused', async () => {
    const server = await start();
    await server.pause();
    await server.stop();
    await expectGone(server.pid);
  });

  it('many start at the same time', async () => {
    const servers = await Promise.all(Array.from({ length: MANY }, () => start()));
    expect(new Set(servers.map(({ port }) => port)).size).toBe(MANY);
  });
}
