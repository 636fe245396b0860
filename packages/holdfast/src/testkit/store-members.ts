/** The members of a store, for a wrapper that spreads them: a store may be an instance of a class. */
import type { Store } from '../protocol/index.js';

export function membersOf(store: Store): Store {
  const { name, traits, instances } = store;
  return {
    name,
    traits,
    apply: (commands) => store.apply(commands),
    ...(store.listen && { listen: store.listen.bind(store) }),
    ...(store.handOff && { handOff: store.handOff.bind(store) }),
    ...(instances && { instances }),
    read: (key) => store.read(key),
    list: (query) => store.list(query),
    probe: () => store.probe(),
    close: () => store.close(),
  };
}
