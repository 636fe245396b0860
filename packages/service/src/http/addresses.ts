/**
 * Addresses: the client of a request, for limits; the proxies that may name a client's address; and loopback, where a
 * service without authentication protects itself from web pages in this machine's browser. A page could otherwise use the
 * service through a host name that resolves to this machine (DNS rebinding).
 */
import { BlockList, isIP, isIPv6 } from 'node:net';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { InvalidArgumentError } from 'holdfast';
import { ANONYMOUS } from './principal.js';
import { Problem } from './problem.js';

export function clientOf({ principal, ip }: FastifyRequest): string {
  // The address is missing when the client has left already.
  return principal && principal !== ANONYMOUS ? principal.id : addressGroup(ip ?? '');
}

/** The /64 network of an IPv6 address: a client with one address has all of it. An IPv4 address is its own group. */
export function addressGroup(address: string): string {
  if (!address.includes(':')) return address;
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail = ''] = plain.split('::');
  const first = head === '' ? [] : head.split(':');
  const last = tail === '' ? [] : tail.split(':');
  const zeros = plain.includes('::')
    ? Array<string>(Math.max(0, 8 - first.length - last.length)).fill('0')
    : [];
  return [...first, ...zeros, ...last].slice(0, 4).join(':');
}

export type IsProxy = (address: string | undefined) => boolean;

/** Addresses and networks such as `10.0.0.0/8`. Never all addresses: then every client could forge its address. */
export function proxiesOf(texts: readonly string[]): IsProxy {
  const list = new BlockList();
  for (const text of texts) addTo(list, text);
  return (address = '') => {
    const plain = address.replace(/%.*$/, '');
    const family = isIP(plain);
    return family !== 0 && list.check(plain, `ipv${family === 4 ? 4 : 6}`);
  };
}

function addTo(list: BlockList, text: string): void {
  const [, address = '', bits] = /^([0-9A-Fa-f.:]+)(?:\/([1-9][0-9]{0,2}))?$/.exec(text) ?? [];
  const family = isIP(address);
  const bitsMax = family === 4 ? 32 : 128;
  const length = Number(bits ?? bitsMax);
  if (family === 0 || length > bitsMax) {
    throw new InvalidArgumentError(
      `${JSON.stringify(text.slice(0, 80))} is not a proxy: write its address, or its network such as 10.0.0.0/8.`,
    );
  }
  list.addSubnet(address, length, family === 4 ? 'ipv4' : 'ipv6');
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/i;

export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}

/**
 * Refuses requests from pages of other sites. A browser sends forms and plain text for any page without a preflight
 * request, but names the page's site in a header.
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
