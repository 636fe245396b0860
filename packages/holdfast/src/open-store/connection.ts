/**
 * A store together with the clients that were made for it: its failures are told with what the client knows, and
 * closing it ends them.
 */
import { HoldfastError, type Store } from '../protocol/index.js';
import { explain } from '../stores/clients/errors.js';

export interface Connection {
  /** For messages: never with a password. */
  readonly where: string;
  /** Why there is no connection just now; null while there is one. Clients say no more than that there is none. */
  trouble(): unknown;
  /** Ends the clients. */
  end(): Promise<void>;
}

export function attended(store: Store, connection: Connection): Store {
  let closing: Promise<void> | null = null;

  const rethrow = (error: unknown): never => {
    throw error instanceof HoldfastError ? error : explain(error, connection.trouble(), connection.where);
  };
  async function* list(query: Parameters<Store['list']>[0]): ReturnType<Store['list']> {
    try {
      yield* store.list(query);
    } catch (error) {
      rethrow(error);
    }
  }
  async function close(): Promise<void> {
    try {
      await store.close();
    } finally {
      await connection.end();
    }
  }

  const listen = store.listen?.bind(store);
  const handOff = store.handOff?.bind(store);
  return {
    name: store.name,
    traits: store.traits,
    apply: (commands) => store.apply(commands).map((reply) => reply.catch(rethrow)),
    ...(listen ? { listen: (...args) => listen(...args).catch(rethrow) } : {}),
    ...(handOff ? { handOff: (hold) => handOff(hold).catch(rethrow) } : {}),
    read: (key) => store.read(key).catch(rethrow),
    list,
    probe: () => store.probe().catch(rethrow),
    close() {
      closing ??= close();
      return closing;
    },
  };
}
