/**
 * Without auth the service is for this machine alone. A web page that this machine's browser shows must not reach it
 * either: by a name of its own that it lets point here, a page could otherwise act as if it came from here.
 */
import { isIP } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { Problem } from './problem.js';

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/i;

export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}

/**
 * Without auth whatever reaches the service may do everything, and a browser reaches it for any page it shows: forms and
 * plain texts go out without asking first. Browsers say where such a request comes from.
 */
export function refuseOtherSites(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const { origin, 'sec-fetch-site': site, 'sec-fetch-mode': mode } = request.headers;
    // A link to the dashboard may stand anywhere.
    const isVisit = request.method === 'GET' && mode === 'navigate';
    // Browsers that do not say it name the page's host.
    const isForeign =
      site === undefined
        ? origin !== undefined && origin.replace(/^https?:\/\//, '') !== request.host
        : !(site === 'same-origin' || site === 'none' || isVisit);
    if (isForeign) done(new Problem('forbidden', 'Pages of other sites may not use this service.'));
    else done();
  });
}

/**
 * Refuses requests that are addressed to a name which a web page could have made up and lets point here. Addresses are
 * taken: a page cannot own one. `*` among the allowed names takes every name.
 */
export function answerKnownHostsOnly(app: FastifyInstance, allowed: readonly string[]): void {
  if (allowed.includes('*')) return;
  const names = new Set(allowed.map((name) => name.toLowerCase()));
  app.addHook('onRequest', (request, _reply, done) => {
    // As it was sent: what a proxy says the name was could be said by a page, too.
    const name = (request.headers.host ?? '').replace(/:\d*$/, '').toLowerCase();
    if (name === '' || isLoopback(name) || isAddress(name) || names.has(name)) done();
    else done(new Problem('forbidden', REFUSED));
  });
}

const REFUSED =
  'Without auth this service answers only to localhost, to IP addresses, and to the host names that it was told to allow ' +
  '(--allowed-hosts): any web page could use it through another name.';

function isAddress(host: string): boolean {
  return isIP(host.replace(/^\[(.*)\]$/, '$1')) !== 0;
}
