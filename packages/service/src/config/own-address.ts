/**
 * Whether a store is the service that is about to start, for example because HOLDFAST_STORE was set for its clients. Such
 * a service would send every request to itself, again and again.
 */
import { isLoopback } from '../http/addresses.js';

const SERVICE = /^(https?):\/\/(?:[^@/?#]*@)?([^/?#]*)/i;
const ALL_ADDRESSES = ['0.0.0.0', '::', '[::]'];

/** Compares addresses only: a name that leads here through a proxy is not recognised. */
export function isOwnAddress(store: string, host: string, port: number): boolean {
  const [, scheme = '', addresses = ''] = SERVICE.exec(store) ?? [];
  return addresses.split(',').some((address) => {
    const text = `${scheme}://${address}`;
    if (address === '' || !URL.canParse(text)) return false;
    const { hostname, port: named } = new URL(text);
    const there = Number(named || (scheme.toLowerCase() === 'https' ? 443 : 80));
    return there === port && isSameHost(hostname, host.toLowerCase());
  });
}

function isSameHost(there: string, here: string): boolean {
  if (there.replace(/^\[(.*)\]$/, '$1') === here.replace(/^\[(.*)\]$/, '$1')) return true;
  if (!isLoopback(there)) return false;
  // Other addresses of loopback may be other services.
  return ALL_ADDRESSES.includes(here) || (isLoopback(here) && [there, here].includes('localhost'));
}
