/**
 * PGlite: a PostgreSQL inside this process, typed by the methods that are used. It is one connection, which never breaks, so
 * wake-ups come over it too.
 */
import { quoteName } from './sql/names.js';
import type { WakeListener } from './wake-listener.js';

/** `PGlite`. Its `query` is not part of the type, so that an object with a `query` like that of pg has the type of pg. */
export interface PgliteLike {
  exec(text: string): Promise<unknown>;
  listen(channel: string, receive: (payload: string) => void): Promise<() => Promise<void>>;
}

export interface Pglite extends PgliteLike {
  query(text: string, values: (string | null)[]): Promise<unknown>;
}

export function isPglite(client: unknown): client is Pglite {
  if (typeof client !== 'object' || client === null) return false;
  const { query, exec, listen } = client as Partial<Pglite>;
  return [query, exec, listen].every((method) => typeof method === 'function');
}

export function pgliteWakeListener(pglite: PgliteLike): WakeListener {
  const stops = new Set<() => Promise<void>>();
  let failure: unknown = null;
  const end = (stop: () => Promise<void>): void => {
    if (!stops.delete(stop)) return;
    // Not awaited: nothing is received from now on, and the database may be closed already.
    stop().catch((error: unknown) => {
      failure = error;
    });
  };
  return {
    async listen(channel, { receive }) {
      // PGlite treats a name as SQL does: without quotes, in lower case.
      const stop = await pglite.listen(quoteName(channel), receive);
      stops.add(stop);
      return async () => end(stop);
    },
    suspect: () => undefined,
    error: () => failure,
    close: () => [...stops].forEach(end),
  };
}
