/** A connection to a store that lives in this process: closing it closes the connection, and the store goes on. */
import { type Stop, type Store, UnsupportedError } from '../../src/protocol/index.js';

export function connectionTo(store: Store): Store {
  const stops: Stop[] = [];
  let closed = false;
  return {
    ...store,
    apply(commands) {
      if (!closed) return store.apply(commands);
      return commands.map(({ key }) =>
        Promise.reject(new UnsupportedError('This connection is closed.', { key })),
      );
    },
    async listen(inbox, wake) {
      if (!store.listen) throw new UnsupportedError('This store does not push.');
      const stop = await store.listen(inbox, wake);
      stops.push(stop);
      return stop;
    },
    async close() {
      closed = true;
      for (const stop of stops) await stop();
    },
  };
}
