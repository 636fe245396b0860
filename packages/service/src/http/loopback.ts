/**
 * Protection of a service without authentication: loopback only, and not for web pages in this machine's browser. A page
 * could otherwise use the service through a host name that resolves to this machine (DNS rebinding).
 */
import { isIP } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { Problem } from './problem.js';

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/i;

export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}

/**
 * Refuses requests from pages of other sites. A browser sends forms and plain text for any page without asking first, but
 * names the page's site in a header.
 */
export function refuseOtherSites(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const { origin, 'sec-fetch-site': site, 'sec-fetch-mode': mode } = request.headers;
    // Links to the dashboard from other sites are fine.
    const isVisit = request.method === 'GET' && mode === 'navigate';
    // Older browsers send the origin only.
    const isForeign =
      site === undefined
        ? origin !== undefined && origin.replace(/^https?:\/\//, '') !== request.host
        : !(site === 'same-origin' || site === 'none' || isVisit);
    if (isForeign) done(new Problem('forbidden', 'Pages of other sites may not use this service.'));
    else done();
  });
}

/**
 * Refuses requests to unknown host names, which a web page may have pointed to this machine. IP addresses are accepted: a
 * page cannot own one. `*` among the allowed names accepts every name.
 */
export function answerKnownHostsOnly(app: FastifyInstance, allowed: readonly string[]): void {
  if (allowed.includes('*')) return;
  const names = new Set(allowed.map((name) => name.toLowerCase()));
  app.addHook('onRequest', (request, _reply, done) => {
    // The header as sent: a page could forge the name in a proxy's header.
    const name = (request.headers.host ?? '').replace(/:\d*$/, '').toLowerCase();
    if (name === '' || isLoopback(name) || isAddress(name) || names.has(name)) done();
    else done(new Problem('forbidden', REFUSED));
  });
}

const REFUSED =
  'Without authentication this service answers only to localhost, IP addresses and allowed host names (--allowed-hosts): ' +
  'any web page could use it through another name.';

function isAddress(host: string): boolean {
  return isIP(host.replace(/^\[(.*)\]$/, '$1')) !== 0;
}
