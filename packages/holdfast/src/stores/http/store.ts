/**
 * Locks kept by a Holdfast service.
 *
 * Layout and atomicity: those of the store behind the service. A batch of commands is one POST, and the service passes
 * the batch to its store unchanged. Hold ids are made by the client and the service keeps no state, so any service on
 * the same store can answer the next command, also one that was restarted. Renewals travel in requests of their own.
 *
 * Clock: that of the store behind the service. Each reply says how far that clock is in doubt.
 *
 * A lost reply: the service may have executed the command or not. The core sends it again with the same hold, to the
 * next service where there are several. A command that the service refuses was not executed.
 *
 * Wake-ups arrive as server-sent events, one stream per inbox. While a stream is lost, or the store behind the service
 * has no wake-ups, the core is told that nothing arrives.
 *
 * The only timers open lost streams again. Requests that hang are given up when the next one is sent. `fetch` keeps
 * connections alive; an open stream keeps the process alive until the store is closed.
 */
import type { Store, Traits } from '../../protocol/index.js';
import { wakeListeners } from '../clients/wake-streams.js';
import { CommandRequests } from './command-requests.js';
import { Connection } from './connection.js';
import { checkOptions, type HttpStoreOptions } from './options.js';
import { probe, reads } from './reads.js';
import { wakeStream } from './wake-stream.js';

/** True for every service; `probe` reports the rest about its store. */
const TRAITS: Traits = {
  clock: 'store',
  clockErrorMs: 0,
  push: true,
  queue: true,
  shared: 'network',
  durable: false,
  livenessPollMs: null,
};

/**
 * Locks kept by a Holdfast service, for clients that cannot or should not reach its store. `urls` are services on one
 * and the same store: when one does not answer, the next is asked.
 */
export function httpStore(options: HttpStoreOptions): Store {
  const checked = checkOptions(options);
  const connection = new Connection(checked, (url) => listeners.onServerLeft(url));
  const listeners = wakeListeners(connection.serviceCount, (...args) => wakeStream(connection, ...args));
  const requests = new CommandRequests(connection);
  const isExposed = checked.hasCredential && checked.urls.some(isPlainHttp);

  return {
    name: 'http',
    traits: TRAITS,
    apply: (commands) => requests.apply(commands),
    async listen(inbox, onWake, onListening = () => undefined) {
      connection.checkOpen();
      return await listeners.listen(inbox, onWake, onListening);
    },
    ...reads(connection),
    probe: () => probe(connection, listeners.error(), isExposed),
    async close() {
      listeners.close();
      connection.close();
    },
  };
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

function isPlainHttp(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !LOOPBACK.test(hostname);
}
