/** Requests of etcd's gateway: keys and values in Base64. */

export const RANGE = '/v3/kv/range';
export const TXN = '/v3/kv/txn';

export const encoded = (text: string): string => Buffer.from(text, 'utf8').toString('base64');

export const textOf = (base64 = ''): string => Buffer.from(base64, 'base64').toString('utf8');

/** `lease`: the etcd lease that deletes the key at last. */
export function put(key: string, value: string, lease?: string): object {
  return { request_put: { key: encoded(key), value: encoded(value), ...(lease !== undefined && { lease }) } };
}

/** A range of all keys with this prefix, which is not empty. No byte of UTF-8 is the last one. */
export function rangeOf(prefix: string): { readonly key: string; readonly range_end: string } {
  const end = Buffer.from(prefix, 'utf8');
  end[end.length - 1] = (end.at(-1) ?? 0) + 1;
  return { key: encoded(prefix), range_end: end.toString('base64') };
}
