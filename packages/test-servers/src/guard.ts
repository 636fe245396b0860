/**
 * Kills processes when this one is gone. A stopped server needs it: the kernel's signal at our death reaches only the
 * process that we started, and its children, being stopped, would never notice that their parent is gone.
 */
import { spawn } from 'node:child_process';

export interface Guard {
  dismiss(): void;
}

/** Its input ends when we end, however that happens. */
const SCRIPT = 'read -r _; kill -KILL "$@"';

export function startGuard(pids: readonly number[]): Guard {
  const child = spawn('sh', ['-c', SCRIPT, 'guard', ...pids.map(String)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  let failure: Error | undefined;
  child.once('error', (error) => {
    failure = error;
  });
  child.unref();
  if (child.stdin !== null && 'unref' in child.stdin && typeof child.stdin.unref === 'function') {
    child.stdin.unref();
  }
  return {
    dismiss: () => {
      if (failure === undefined) child.kill('SIGKILL');
    },
  };
}
