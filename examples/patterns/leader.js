// @ts-check
/**
 * One leader among all instances. The body of the loop leads; when it ends, or the lease is lost, another one does. A
 * leader that stops hands over at once, one that dies within the ttl.
 *
 * For a fleet: HOLDFAST_STORE=redis://HOST.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, openStore } from 'holdfast';

const locks = createLocks(await openStore(process.env.HOLDFAST_STORE ?? 'sqlite:locks.db'));
const stopping = new AbortController();
process.once('SIGTERM', () => stopping.abort());

for await (const { token, signal } of locks.elect('leader', { ttl: '5s', signal: stopping.signal })) {
  console.log('leading', token);
  // What only the leader does, until it is told to stop or no longer leads.
  while (!signal.aborted) await sleep(100);
}
await locks.close();
