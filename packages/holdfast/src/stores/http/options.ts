/** The options of `httpStore`, checked once. No message quotes an API key, a JWT or a header's value. */
import { InvalidArgumentError, NotExecutedError } from '../../protocol/index.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import { messageOf } from '../clients/errors.js';
import type { FetchLike } from '../clients/fetch.js';

/** Options of `httpStore`. */
export interface HttpStoreOptions {
  /** Address of the service, such as https://locks.example.com; with a path where a proxy adds one. No default. */
  readonly url?: string;
  /** Instead of `url`: services on one and the same store. When one does not answer, the next is asked. No default. */
  readonly urls?: readonly string[];
  /** An API key, as `holdfast api-key create` prints it. Default none. */
  readonly apiKey?: string;
  /** Instead of `apiKey`: a JWT, or a function that returns the current one and is called before every request. Default none. */
  readonly jwt?: string | (() => string | Promise<string>);
  /** Sent with every request. Default none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: Node's `fetch`. */
  readonly fetch?: FetchLike;
}

export interface CheckedOptions {
  readonly urls: readonly string[];
  /** Whether an API key or a JWT is sent. */
  readonly hasCredential: boolean;
  headers(): Promise<Readonly<Record<string, string>>>;
  readonly fetch: FetchLike;
}

const NAMES = ['url', 'urls', 'apiKey', 'jwt', 'headers', 'fetch'];
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;
const CREDENTIAL = /^[\x21-\x7e]+$/;
const URLS_MAX = 64;

export function checkOptions(options: HttpStoreOptions): CheckedOptions {
  checkOptionNames(options, NAMES);
  const { url, urls, apiKey, jwt, fetch = globalThis.fetch } = options;
  if ((url === undefined) === (urls === undefined)) {
    throw new InvalidArgumentError('httpStore needs either url, or urls for several services on one store.');
  }
  if (apiKey !== undefined && jwt !== undefined) {
    throw new InvalidArgumentError('httpStore takes an apiKey or a jwt, not both.');
  }
  if (typeof fetch !== 'function') {
    throw new InvalidArgumentError("fetch has to be a function like Node's.");
  }
  const given = checkedHeaders(options.headers ?? {});
  const fixed = apiKey ?? (typeof jwt === 'string' ? jwt : undefined);
  const all =
    fixed === undefined ? given : { ...given, ...bearer(fixed, apiKey === undefined ? 'jwt' : 'apiKey') };
  return {
    urls: checkedUrls(url === undefined ? urls : [url]),
    hasCredential: apiKey !== undefined || jwt !== undefined,
    headers: async () => (typeof jwt === 'function' ? { ...given, ...(await currentBearer(jwt)) } : all),
    // Called as a plain function: Node's `fetch` rejects another `this`.
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
    throw new InvalidArgumentError('The url contains a user name or an API key: pass it as apiKey or jwt.');
  }
  if (url.search !== '' || url.hash !== '') {
    throw new InvalidArgumentError('The url of a service has no ? and no #: remove the part that follows.');
  }
  return url.href.replace(/\/+$/, '');
}

function checkedHeaders(headers: unknown): Readonly<Record<string, string>> {
  if (typeof headers !== 'object' || headers === null) {
    throw new InvalidArgumentError('headers has to be an object of names and values.');
  }
  const checked: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (!HEADER_NAME.test(name) || typeof value !== 'string' || !HEADER_VALUE.test(value)) {
      throw new InvalidArgumentError(`The header ${JSON.stringify(name)} is not valid in HTTP.`);
    }
    checked[name.toLowerCase()] = value;
  }
  return checked;
}

/** Nothing is sent without it: a function that fails is asked again, as a server that is away. */
async function currentBearer(jwt: () => unknown): Promise<{ readonly authorization: string }> {
  try {
    return bearer(await jwt(), 'jwt');
  } catch (cause) {
    throw new NotExecutedError(`there is no JWT to send: ${messageOf(cause)}`, 'while-waiting', cause);
  }
}

/** Checked here, because `fetch` quotes an invalid header value in its error. */
function bearer(credential: unknown, option: 'apiKey' | 'jwt'): { readonly authorization: string } {
  if (typeof credential === 'string' && CREDENTIAL.test(credential)) {
    return { authorization: `Bearer ${credential}` };
  }
  throw new InvalidArgumentError(`The ${option} has to be text without spaces, exactly as it was issued.`);
}
