/** A time namespace in which the machine has slept for ten hours: its uptime is that much longer than Node's clock. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Child } from './child.js';

const UNSHARE = ['unshare', '--fork', '--kill-child', '--time', '--boottime', '36000'];
const HOLDER = new URL('./holder.js', import.meta.url);

export function canSleep(): boolean {
  return spawnSync('unshare', [...UNSHARE.slice(1), 'true']).status === 0;
}

export interface SleptMachine {
  /** Keeps the namespace; holds a key in `file` meanwhile. */
  readonly process: Child;
  /** Commands run in there behind these words. */
  readonly inside: readonly string[];
}

export async function sleptMachine(file: string): Promise<SleptMachine> {
  const keeper = new Child(HOLDER, [file, '30000'], UNSHARE);
  await keeper.said('held');
  const pid = Number(readFileSync(`/proc/${keeper.pid}/task/${keeper.pid}/children`, 'utf8'));
  return { process: keeper, inside: ['nsenter', `--time=/proc/${pid}/ns/time`] };
}
