/**
 * Clients opened from a URL: the package is loaded on demand, the store's errors are explained with the state of its
 * connection, and closing the store ends the client.
 */
import { HoldfastError, type Store, StoreError, UnsupportedError } from '../../protocol/index.js';
import { isError } from '../../protocol/is-error.js';
import { explain, messageOf } from './errors.js';

/** A client package that can be used: its name, and how it is loaded and set up. */
export interface Candidate<T> {
  readonly name: string;
  /** Rejects with `NotInstalled` where the package is missing. */
  load(): Promise<T>;
}

export interface Connection {
  /** The server's address for messages, never with a password. */
  readonly where: string;
  /** Why there is no connection now; null while there is one. The client's own errors do not say. */
  error(): unknown;
  /** Ends the client. Called once. */
  end(): Promise<void>;
}

export interface OpenedClient<C> {
  readonly client: C;
  readonly connection: Connection;
}

/** Settings that the clients share. */
export const CONNECT_MS_MAX = 2_000;
/** No command waits longer than this for a row lock of another connection. */
export const STATEMENT_MS_MAX = 4_000;
export const KEEP_ALIVE_MS = 10_000;
/** A server that vanished without closing the connection is noticed by unanswered pings. */
export const PING_MS = 2_000;

class NotInstalled extends Error {}

/**
 * For the `catch` of an `import()`. Each `import()` has its own `try` and a literal name: bundlers then include an
 * installed package, and leave the import of a missing one as it is instead of failing.
 */
export function importError(name: string, error: unknown): unknown {
  const code = isError(error) && 'code' in error ? error.code : null;
  const isModule = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
  // The missing module may be a dependency of an installed package.
  const isMissing = isModule && messageOf(error).includes(`'${name}'`);
  return isMissing ? new NotInstalled(`${name} is not installed.`, { cause: error }) : error;
}

/** Loads the first installed package. A package that is installed but broken is an error, not skipped. */
export async function loadFirst<T>(what: string, candidates: readonly Candidate<T>[]): Promise<T> {
  const missing: unknown[] = [];
  for (const { load } of candidates) {
    try {
      return await load();
    } catch (error) {
      if (!(error instanceof NotInstalled)) throw error;
      missing.push(error);
    }
  }
  const [first, ...others] = candidates.map(({ name }) => name);
  const instead = others.length > 0 ? ` (or ${others.join(', ')})` : '';
  throw new UnsupportedError(
    `A client package for ${what} is needed, and none is installed: npm install ${first}${instead}.`,
    { cause: missing[0] },
  );
}

/** Makes a store on an opened client. Ends the client where the store refuses its options. */
export async function storeOn<C>(
  { client, connection }: OpenedClient<C>,
  make: (client: C) => Store,
): Promise<Store> {
  try {
    return connectedStore(make(client), connection);
  } catch (error) {
    await connection.end();
    throw error;
  }
}

/** Runs a migration on an opened client, and ends the client. `failure` begins the message of an error. */
export async function migrateOn<C, T>(
  { client, connection }: OpenedClient<C>,
  failure: string,
  run: (client: C) => Promise<T>,
): Promise<T> {
  try {
    return await run(client);
  } catch (error) {
    if (error instanceof HoldfastError) throw error;
    const cause = explain(error, connection.error(), connection.where);
    throw new StoreError(`${failure}: ${cause.message}`, { operation: 'migrate', cause });
  } finally {
    await connection.end();
  }
}

/** The same store: its errors are explained with the state of the connection, and `close` ends the client. */
export function connectedStore(store: Store, connection: Connection): Store {
  let closing: Promise<void> | null = null;

  const rethrow = (error: unknown): never => {
    throw error instanceof HoldfastError ? error : explain(error, connection.error(), connection.where);
  };
  const listen = store.listen?.bind(store);
  const handOff = store.handOff?.bind(store);
  return {
    ...store,
    apply: (commands) => store.apply(commands).map((reply) => reply.catch(rethrow)),
    ...(listen && { listen: (...args) => listen(...args).catch(rethrow) }),
    ...(handOff && { handOff: (hold) => handOff(hold).catch(rethrow) }),
    read: (key) => store.read(key).catch(rethrow),
    async *list(query) {
      try {
        yield* store.list(query);
      } catch (error) {
        rethrow(error);
      }
    },
    probe: () => store.probe().catch(rethrow),
    close() {
      closing ??= store.close().finally(() => connection.end());
      return closing;
    },
  };
}
