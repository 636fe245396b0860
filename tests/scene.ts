/** What every scene of a test has: things to clear away, files of its own, and waiting until something is so. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const clearing: (() => unknown)[] = [];

/** For `afterEach` or `afterAll`: ends and deletes what the test made, the last first. */
export async function clearScene(): Promise<void> {
  for (const clear of clearing.splice(0).reverse()) await clear();
}

export function atTheEnd(clear: () => unknown): void {
  clearing.push(clear);
}

export function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-test-'));
  atTheEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function freshFile(): string {
  return join(freshFolder(), 'locks.db');
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Looks again and again until it is so. */
export async function until(
  isSo: () => boolean | Promise<boolean>,
  what: string,
  withinMs = 60_000,
): Promise<void> {
  const endMs = Date.now() + withinMs;
  while (!(await isSo())) {
    if (Date.now() > endMs) throw new Error(`Waited in vain until ${what}.`);
    await pause(10);
  }
}
