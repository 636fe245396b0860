// @ts-check
/**
 * Next: a route handler of the App Router, `app/api/entries/route.js`. It adds an entry to a list by reading the list and
 * writing it back: under a lock, so that no instance writes over the entry of another. Who would wait for longer than
 * five seconds is answered 503, and who goes away waits no longer.
 *
 * The locks are kept on `globalThis`, one for the process: in development Next loads its modules again and again. The
 * first request opens the store; `next build` does not.
 *
 * For a fleet: HOLDFAST_STORE=redis://… instead of a file of one machine, and your database instead of entries.json.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { locks } from 'holdfast/env';

process.env.HOLDFAST_STORE ??= 'sqlite:locks.db';
const { holdfast = locks } = /** @type {{ holdfast?: import('holdfast').Locks }} */ (globalThis);
Object.assign(globalThis, { holdfast });

/** @param {Request} request */
export async function POST(request) {
  const entry = await request.json();
  const add = async () => {
    const entries = JSON.parse(await readFile('entries.json', 'utf8'));
    await writeFile('entries.json', JSON.stringify([...entries, entry]));
  };
  const { acquired } = await holdfast.tryWithLock('entries', add, { wait: '5s', signal: request.signal });
  return Response.json({ acquired }, { status: acquired ? 201 : 503 });
}
