/** The options of `httpStore`, checked once. No message quotes a key, a token or a header's value. */
import { InvalidArgumentError } from '../../protocol/index.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import type { FetchLike } from './client.js';

export interface HttpStoreOptions {
  /** Where the service is, such as https://locks.example.com; with a path where a proxy puts it under one. */
  readonly url?: string;
  /** Instead of `url`: services on one and the same store. While one does not answer, the next is asked. */
  readonly urls?: readonly string[];
  /** An API key, as `holdfast api-key create` shows it. */
  readonly key?: string;
  /** Instead of `key`: a JWT, or what gives the one that is valid now; asked before every request. */
  readonly token?: string | (() => string | Promise<string>);
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Instead of Node's own. */
  readonly fetch?: FetchLike;
}

export interface Checked {
  readonly urls: readonly string[];
  /** Whether something secret is sent along. */
  readonly secret: boolean;
  headers(): Promise<Readonly<Record<string, string>>>;
  readonly fetch: FetchLike;
}

const NAMES = ['url', 'urls', 'key', 'token', 'headers', 'fetch'];
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;
const CREDENTIAL = /^[\x21-\x7e]+$/;
const URLS_MAX = 64;

export function checkOptions(options: HttpStoreOptions): Checked {
  checkOptionNames(options, NAMES);
  const { url, urls, key, token, fetch = globalThis.fetch } = options;
  if ((url === undefined) === (urls === undefined)) {
    throw new InvalidArgumentError('httpStore needs either url, or urls for services on one store.');
  }
  if (key !== undefined && token !== undefined) {
    throw new InvalidArgumentError('Give httpStore a key or a token, not both.');
  }
  if (typeof fetch !== 'function') {
    throw new InvalidArgumentError('fetch has to be a function like that of Node.');
  }
  const given = checkedHeaders(options.headers ?? {});
  const fixed = key ?? (typeof token === 'string' ? token : undefined);
  const all =
    fixed === undefined ? given : { ...given, ...bearer(fixed, key === undefined ? 'token' : 'key') };
  return {
    urls: checkedUrls(url === undefined ? urls : [url]),
    secret: key !== undefined || token !== undefined,
    headers: async () =>
      typeof token === 'function' ? { ...given, ...bearer(await token(), 'token') } : all,
    // Called as a plain function: that of Node minds what it is called on.
    fetch: (where, request) => fetch(where, request),
  };
}

function checkedUrls(urls: unknown): readonly string[] {
  if (!Array.isArray(urls) || urls.length === 0 || urls.length > URLS_MAX) {
    throw new InvalidArgumentError(`urls has to be a list of 1 to ${URLS_MAX} addresses.`);
  }
  return [...new Set(urls.map(checkedUrl))];
}

function checkedUrl(text: unknown): string {
  const url = typeof text === 'string' && URL.canParse(text) ? new URL(text) : null;
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new InvalidArgumentError(
      'The url of a service begins with http:// or https://, such as https://locks.example.com.',
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw new InvalidArgumentError('There is a user name or key in the url: give it as key or token.');
  }
  if (url.search !== '' || url.hash !== '') {
    throw new InvalidArgumentError('The url of a service has no ? and no #: leave out what follows.');
  }
  return url.href.replace(/\/+$/, '');
}

function checkedHeaders(headers: unknown): Readonly<Record<string, string>> {
  if (typeof headers !== 'object' || headers === null) {
    throw new InvalidArgumentError('headers has to be an object: names and values.');
  }
  const checked: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (!HEADER_NAME.test(name) || typeof value !== 'string' || !HEADER_VALUE.test(value)) {
      throw new InvalidArgumentError(`The header ${JSON.stringify(name)} is none that HTTP can carry.`);
    }
    checked[name.toLowerCase()] = value;
  }
  return checked;
}

/** Keys and tokens alike. Checked here: what HTTP cannot carry, `fetch` would quote in its error. */
function bearer(credential: unknown, what: 'key' | 'token'): { readonly authorization: string } {
  if (typeof credential === 'string' && CREDENTIAL.test(credential)) {
    return { authorization: `Bearer ${credential}` };
  }
  throw new InvalidArgumentError(`The ${what} has to be text without blanks, as it was given out.`);
}
