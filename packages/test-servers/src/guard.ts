/**
 * Kills paused processes when this process ends. The kernel's signal reaches only the process that we started; its
 * children are stopped and would not notice that their parent has ended.
 */
import { spawn } from 'node:child_process';

export interface Guard {
  dismiss(): void;
}

/** Its standard input ends when this process ends, however that happens. */
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
