/** Work on a connection of a pool, with a limit on every wait. */
import { ignore } from '../../protocol/ignore.js';
import { NotExecutedError } from '../../protocol/index.js';
import { isReadOnly, messageOf, notExecuted } from '../clients/errors.js';
import { STATEMENT_MS_MAX } from '../clients/opened-client.js';
import { within } from '../clients/within.js';

/** The members of a pooled connection. A connection without them is not of a pool. */
export interface Pooled {
  release?(): unknown;
  destroy?(): unknown;
}

/** Runs on a connection of the pool. One that hangs is destroyed, and so is one to a server that turned read-only. */
export async function onPooled<C extends Pooled, T>(
  acquiring: Promise<C>,
  run: (connection: C) => Promise<T>,
): Promise<T> {
  const connection = await acquired(acquiring);
  let isFit = true;
  const destroy = (): void => {
    isFit = false;
    connection.destroy?.();
  };
  try {
    return await answered(run(connection), destroy);
  } catch (error) {
    // After a failover the address may lead to another server, which only a new connection reaches.
    if (isReadOnly(error)) destroy();
    throw error;
  } finally {
    if (isFit) release(connection);
  }
}

export function answered<T>(run: Promise<T>, onTimeout: () => void = () => undefined): Promise<T> {
  return within(STATEMENT_MS_MAX, run, () => {
    onTimeout();
    return new Error('the server got the statement but does not answer');
  });
}

/** Rejects with a `NotExecutedError`: nothing was sent yet. */
async function acquired<C extends Pooled>(acquiring: Promise<C>): Promise<C> {
  try {
    return await within(STATEMENT_MS_MAX, acquiring, () => {
      // It may come later, and nobody waits for it then.
      acquiring.then(release, ignore);
      return new Error(`the pool had no free connection for ${STATEMENT_MS_MAX} ms: make it larger`);
    });
  } catch (error) {
    throw notExecuted(error) ?? new NotExecutedError(messageOf(error), 'while-waiting', error);
  }
}

function release(connection: Pooled): void {
  // Some drivers return a promise. A connection that cannot be released leaves the pool by itself.
  Promise.resolve(connection.release?.()).catch(ignore);
}
