/** Ends the turns of this process in two steps: their holders have a while to end them, then they are taken away. */
import type { Core } from './core.js';

/**
 * Gives the turns of this moment `drainMs` to end, then revokes those still held: the holder is told first, and the
 * store after. All are tried, whatever becomes of one of them; then the first failure is thrown.
 */
export async function drain(core: Core, drainMs: number, reason: string): Promise<void> {
  const turns = core.turns();
  if (drainMs > 0 && turns.length > 0) {
    await new Promise<void>((resolve) => {
      const timer = core.agenda.call(core.clock.monotonicMs() + drainMs, resolve);
      void Promise.all(turns.map((turn) => turn.over())).then(() => {
        core.agenda.cancel(timer);
        resolve();
      });
    });
  }
  for (const outcome of await Promise.allSettled(turns.map((turn) => turn.revoke(reason)))) {
    if (outcome.status === 'rejected') throw outcome.reason;
  }
}
