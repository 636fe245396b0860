/** Trusted proxies: only their `x-forwarded-for` names the client's address. */
import { BlockList, isIP } from 'node:net';
import { InvalidArgumentError } from 'holdfast';

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
