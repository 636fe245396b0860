/** The client of a request, for limits with and without authentication: its principal, else its address. */
import { isIPv6 } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { ANONYMOUS } from './principal.js';

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
