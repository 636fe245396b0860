/**
 * Parses the URLs of servers. `new URL` knows one host only and accepts unknown options. Messages quote no more of a URL
 * than its scheme and the names of its options: a password that was not escaped can be anywhere.
 */
// By this name Node loads the module with its first use: few URLs name a file.
import { promises } from 'node:fs';
import { InvalidArgumentError } from '../../protocol/index.js';
import { messageOf } from './errors.js';

export interface Address {
  readonly host: string;
  readonly port: number | null;
}

export interface Server {
  readonly host: string;
  readonly port: number;
}

export interface ServerUrl {
  readonly scheme: string;
  readonly user: string | null;
  readonly password: string | null;
  /** Empty when the URL names none. */
  readonly addresses: readonly Address[];
  /** The part after the first slash, or ''. */
  readonly path: string;
  readonly options: ReadonlyMap<string, string>;
}

const PARTS = /^\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/s;
const ADDRESS = /^(?:\[([0-9a-f:.]+)\]|([^:[\]@\s]*))(?::(\d{1,5}))?$/i;
const PORT_MAX = 65_535;
const ESCAPES = 'In a user name or password, : / ? # @ % are written %3A %2F %3F %23 %40 %25.';

/** `form` shows how such a URL is written, for error messages. */
export function parseServerUrl(
  scheme: string,
  rest: string,
  form: string,
  known: readonly string[],
): ServerUrl {
  const [, authority, path = '', query = ''] = PARTS.exec(rest) ?? [];
  if (authority === undefined || path.includes('@')) throw malformed(scheme, form);
  const at = authority.lastIndexOf('@');
  const [user = '', ...password] = at === -1 ? [] : authority.slice(0, at).split(':');
  if (password.length > 1) throw malformed(scheme, form);
  return {
    scheme,
    user: decoded(user) || null,
    password: decoded(password[0] ?? '') || null,
    addresses: addressesOf(authority.slice(at + 1)) ?? refuse(malformed(scheme, form)),
    path: decoded(path),
    options: optionsOf(scheme, query, known),
  };
}

function addressesOf(text: string): readonly Address[] | null {
  if (text === '') return [];
  const addresses: Address[] = [];
  for (const part of text.split(',')) {
    const [whole, v6, name = '', digits] = ADDRESS.exec(part) ?? [];
    const port = digits === undefined ? null : Number(digits);
    if (!whole || port === 0 || (port ?? 1) > PORT_MAX) return null;
    addresses.push({ host: v6 ?? decoded(name), port });
  }
  return addresses;
}

function optionsOf(scheme: string, query: string, known: readonly string[]): ReadonlyMap<string, string> {
  const options = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    if (!known.includes(name)) {
      throw new InvalidArgumentError(
        `There is no option "${name}" in a ${scheme}: URL. The options are: ${known.join(', ') || 'none'}.`,
      );
    }
    if (options.has(name)) {
      throw new InvalidArgumentError(`The option "${name}" is given twice in this ${scheme}: URL.`);
    }
    if (value === '')
      throw new InvalidArgumentError(`The option "${name}" has no value in this ${scheme}: URL.`);
    options.set(name, value);
  }
  return options;
}

function malformed(scheme: string, form: string): InvalidArgumentError {
  return new InvalidArgumentError(`This ${scheme}: URL is invalid: expected ${form}. ${ESCAPES}`);
}

export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new InvalidArgumentError(
      'The URL has a % that is not the start of an escape: write it %25 where it is only a letter.',
      { cause },
    );
  }
}

function refuse(error: Error): never {
  throw error;
}

/** The same object without the members that are undefined. */
export function given<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** The servers of the URL, with this port by default. A host that is left out is `localhost`. */
export function serversIn({ addresses }: ServerUrl, defaultPort: number): readonly Server[] {
  const named = addresses.length === 0 ? [{ host: '', port: null }] : addresses;
  return named.map(({ host, port }) => ({ host: host || 'localhost', port: port ?? defaultPort }));
}

/** HOST:PORT; the host of an IPv6 address is in brackets. */
export function hostAndPort(host: string, port: number | null): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return port === null ? name : `${name}:${port}`;
}

/** HOST:PORT in an option. */
export function addressIn({ options }: ServerUrl, name: string): Address | undefined {
  const text = options.get(name);
  if (text === undefined) return undefined;
  const [address, ...others] = addressesOf(text) ?? [];
  if (address && address.host !== '' && address.port !== null && others.length === 0) return address;
  throw new InvalidArgumentError(`The option "${name}" is a host and its port: ${name}=localhost:8080.`);
}

export function flagIn({ options }: ServerUrl, name: string): boolean | undefined {
  const text = options.get(name);
  if (text === undefined) return undefined;
  if (text === 'true' || text === 'false') return text === 'true';
  throw new InvalidArgumentError(`The option "${name}" is true or false.`);
}

export function countIn({ options }: ServerUrl, name: string, max: number): number | undefined {
  const text = options.get(name);
  if (text === undefined) return undefined;
  const count = Number(text);
  if (/^\d{1,9}$/.test(text) && count >= 1 && count <= max) return count;
  throw new InvalidArgumentError(`The option "${name}" is a whole number from 1 to ${max}.`);
}

/** The content of the file that an option names. */
export async function contentOf(option: string, path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  try {
    return await promises.readFile(path, 'utf8');
  } catch (cause) {
    throw new InvalidArgumentError(`The file that ${option} names cannot be read: ${messageOf(cause)}`, {
      cause,
    });
  }
}
