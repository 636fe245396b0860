/**
 * The lock service as a store.
 *
 * Layout and atomicity are those of the store behind the service: a batch of commands is one POST, which the service
 * gives to that store as it is. Holds are made here, and the service keeps nothing of them, so any service on the same
 * store can answer the next command, and one that is restarted has forgotten nothing. Renewals go in requests of their
 * own.
 *
 * Clock: that of the store behind the service; how far it is in doubt comes along with each reply.
 *
 * A reply is lost whenever a request or its answer is: the service may have done it or not, and the core asks again
 * with the same hold, of the next service where there are several. What a service refuses was not done.
 *
 * Hints come as server-sent events, one stream an inbox. While a stream is lost, or the store behind the service has
 * none, the core is told that nothing is heard.
 *
 * Nothing here waits or sets a timer: what hangs is given up, and what was lost is made again, when commands are sent.
 * Connections are those of `fetch`, kept alive by it; an open stream keeps the process alive until the store is closed.
 */
import type { Store, Traits } from '../../protocol/index.js';
import { Batches } from './batches.js';
import { Ears } from './ears.js';
import { Line } from './line.js';
import { looks, probe } from './looks.js';
import type { Checked } from './options.js';

/** True of every service: what its store is like beyond that, `probe` tells. */
const TRAITS: Traits = {
  clock: 'store',
  clockErrorMs: 0,
  push: true,
  queue: true,
  shared: 'network',
  durable: false,
  vigilMs: null,
};

export function storeOver(parts: Checked): Store {
  const line = new Line(parts, (url) => ears.left(url));
  const ears = new Ears(line);
  const batches = new Batches(line);
  const exposed = parts.secret && parts.urls.some(isInTheOpen);

  return {
    name: 'http',
    traits: TRAITS,
    apply(commands) {
      ears.mend();
      return batches.apply(commands);
    },
    async listen(inbox, wake, hears = () => undefined) {
      line.checkOpen();
      return await ears.listen(inbox, wake, hears);
    },
    ...looks(line),
    probe: () => probe(line, { deafness: ears.trouble(), exposed }),
    async close() {
      ears.close();
      line.close();
    },
  };
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

function isInTheOpen(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !LOOPBACK.test(hostname);
}
