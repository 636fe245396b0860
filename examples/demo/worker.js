/**
 * One of the contending processes: takes the key, works a moment, gives it back, and says so to its parent.
 * It knows nothing of the others; the store decides whose turn it is.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, openStore } from 'holdfast';
import { machineMs } from './machine-clock.js';

const [url = '', key = '', name = ''] = process.argv.slice(2);
const leaving = new AbortController();
process.on('message', () => leaving.abort());
process.on('disconnect', () => process.exit(0));
process.on('SIGINT', () => {
  // The terminal sends Ctrl-C to every process; the parent tells this one when to leave.
});

/** @param {import('./contest.js').Report} report */
function tell(report) {
  if (process.connected) process.send?.(report);
}

const locks = createLocks(await openStore(url), { owner: name });
try {
  while (!leaving.signal.aborted) {
    const startedAt = machineMs();
    const lease = await locks.acquire(key, { ttl: '30s', wait: '1m', signal: leaving.signal });
    const at = machineMs();
    tell({ at, kind: 'acquired', token: lease.token, waitedMs: at - startedAt });
    await sleep(300 + Math.random() * 300);
    lease.assertHeld();
    tell({ at: machineMs(), kind: 'released', token: lease.token });
    await lease.release();
    await sleep(Math.random() * 50);
  }
} catch (error) {
  if (!leaving.signal.aborted) throw error;
}
await locks.close();
process.disconnect?.();
