/** Whose address it is, as far as limits by address go. */
import { isIPv6 } from 'node:net';

/** Whoever has one address of IPv6 has the 2^64 around it, too. */
export function neighbourhood(address: string): string {
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
