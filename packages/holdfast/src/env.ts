/**
 * `locks` on the store that the environment names: HOLDFAST_STORE is its URL, HOLDFAST_NAMESPACE the namespace of the
 * keys. Both are read by the first command, so that importing this does nothing.
 */
import type { Locks } from './api.js';
import { lazyLocks } from './locks.js';
import { openStore } from './open-store.js';
import type { Command, Reply, Why } from './protocol/commands.js';
import { InvalidArgumentError, NotExecutedError } from './protocol/errors.js';
import type { HoldId } from './protocol/state.js';
import type { ListQuery, Snapshot, Stop, Store, Traits } from './protocol/store.js';

/** The traits until the store is open, when no command has been sent yet. */
const TRAITS: Traits = {
  clock: 'store',
  clockErrorMs: 0,
  push: true,
  queue: true,
  shared: 'network',
  durable: true,
  livenessPollMs: null,
};

/** A store that is opened at its first use. If it cannot be opened, every command fails with that error. */
class LazyStore implements Store {
  readonly name = 'environment';
  #opening: Promise<Store> | null = null;
  #store: Store | null = null;

  get traits(): Traits {
    return this.#store?.traits ?? TRAITS;
  }

  /** Does nothing if the store does not end holds together with their process. */
  async handOff(hold: HoldId): Promise<void> {
    await (await this.#open()).handOff?.(hold);
  }

  apply(commands: readonly Command[]): readonly Promise<Reply>[] {
    if (this.#store) return this.#store.apply(commands);
    // In one batch, so that commands of one key stay in order.
    const replies = this.#open().then((store) =>
      store.apply(commands.map((command) => asked(store, command))),
    );
    return commands.map(async (_, index) => (await replies)[index] as Promise<Reply>);
  }

  async listen(
    inbox: string,
    wake: (key: string, why: Why) => void,
    onListening?: (isListening: boolean) => void,
  ): Promise<Stop> {
    const store = await this.#open();
    return (await store.listen?.(inbox, wake, onListening)) ?? (async () => undefined);
  }

  async read(key: string): Promise<Snapshot | null> {
    return (await this.#open()).read(key);
  }

  async *list(query: ListQuery): AsyncGenerator<Snapshot> {
    yield* (await this.#open()).list(query);
  }

  async probe(): ReturnType<Store['probe']> {
    return (await this.#open()).probe();
  }

  async close(): Promise<void> {
    if (this.#opening) await (await this.#opening).close();
  }

  #open(): Promise<Store> {
    this.#opening ??= openFromEnvironment().then(
      (store) => {
        this.#store = store;
        return store;
      },
      (error: unknown) => {
        this.#opening = null;
        throw new NotExecutedError(error instanceof Error ? error.message : String(error), 'never', error);
      },
    );
    return this.#opening;
  }
}

/** Claims made before the store was open ask for its queue, whether it has one or not. */
function asked({ traits }: Store, command: Command): Command {
  return command.kind === 'claim' && !traits.queue ? { ...command, queue: false } : command;
}

async function openFromEnvironment(): Promise<Store> {
  const { HOLDFAST_STORE: url } = process.env;
  if (url) return openStore(url);
  throw new InvalidArgumentError(
    'HOLDFAST_STORE is not set: it names the store, such as sqlite:locks.db or redis://localhost.',
  );
}

/**
 * Locks on the store that `HOLDFAST_STORE` names, in the namespace `HOLDFAST_NAMESPACE`. Opens the store with the
 * first command.
 */
export const locks: Locks = lazyLocks(new LazyStore(), () => process.env.HOLDFAST_NAMESPACE || undefined);
