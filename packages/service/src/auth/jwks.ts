/**
 * The issuer's keys, cached. They are fetched again when they are five minutes old, and, at most every thirty seconds,
 * when a JWT names a key that is not among them. While the issuer does not answer, keys of at most an hour are still used,
 * after a second of waiting for the new ones; after a failure it is not asked for three seconds. Requests that need the
 * keys at the same time share one fetch. When the keys cannot be fetched, the error is `JwksUnavailable`, never "unknown
 * key".
 */
import { readFile } from 'node:fs/promises';
import { InvalidArgumentError } from 'holdfast';
import {
  createLocalJWKSet,
  errors,
  type FlattenedJWSInput,
  type JSONWebKeySet,
  type JWK,
  type JWSHeaderParameters,
} from 'jose';
import type { Logger } from 'pino';
import { after, monotonicMs, within } from '../clock.js';
import { isLoopback } from '../http/addresses.js';
import { reasonOf } from './api-key-file.js';

export class JwksUnavailable extends Error {
  constructor(cause: unknown) {
    super('The keys of the issuer are not available.', { cause });
    this.name = 'JwksUnavailable';
  }
}

type Finder = ReturnType<typeof createLocalJWKSet>;
export type SigningKey = Awaited<ReturnType<Finder>>;

/** Replaced in tests. */
export interface JwksTimes {
  readonly freshMs: number;
  readonly staleMsMax: number;
  readonly unknownKeyMs: number;
  readonly afterFailureMs: number;
  /** How long requests wait for new keys while the old ones can be used. */
  readonly patienceMs: number;
}

const TIMES: JwksTimes = {
  freshMs: 5 * 60_000,
  staleMsMax: 60 * 60_000,
  unknownKeyMs: 30_000,
  afterFailureMs: 3_000,
  patienceMs: 1_000,
};

export class Jwks {
  readonly #source: JwksSource;
  readonly #log: Logger | undefined;
  readonly #times: JwksTimes;
  #find: Finder | null = null;
  #fetchedMs = Number.NEGATIVE_INFINITY;
  #failure: { readonly cause: unknown; readonly atMs: number } | null = null;
  #fetching: Promise<void> | null = null;
  #fetchingSinceMs = 0;

  constructor(source: JwksSource, log?: Logger, times: Partial<JwksTimes> = {}) {
    this.#source = source;
    this.#log = log;
    this.#times = { ...TIMES, ...times };
  }

  /** The key that a JWT was signed with, by its `kid` and `alg` alone: a key in the JWT itself is ignored. */
  async keyFor(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<SigningKey> {
    if (this.#ageMs() > this.#times.freshMs) await this.#renew();
    const find = this.#find;
    if (!find || this.#ageMs() > this.#times.staleMsMax) throw this.#unavailable();
    try {
      return await find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      return await this.#lookAgain(header, token, error);
    }
  }

  /** The issuer may have a new key. While it does not answer, the key cannot be called wrong. */
  async #lookAgain(
    header: JWSHeaderParameters,
    token: FlattenedJWSInput,
    unknown: errors.JWKSNoMatchingKey,
  ): Promise<SigningKey> {
    if (this.#ageMs() > this.#times.unknownKeyMs) await this.#refresh();
    if (this.#failure) throw this.#unavailable();
    if (!this.#find) throw unknown;
    return await this.#find(header, token);
  }

  /** An issuer that hangs must not delay every request, renewals too, while its last keys are good. */
  async #renew(): Promise<void> {
    const refreshed = this.#refresh();
    const { staleMsMax, patienceMs } = this.#times;
    if (this.#ageMs() > staleMsMax) await refreshed;
    else await within(this.#fetchingSinceMs + patienceMs - monotonicMs(), refreshed, undefined);
  }

  async #refresh(): Promise<void> {
    const failedMs = this.#failure?.atMs ?? Number.NEGATIVE_INFINITY;
    if (!this.#fetching && monotonicMs() - failedMs < this.#times.afterFailureMs) return;
    if (!this.#fetching) {
      this.#fetchingSinceMs = monotonicMs();
      this.#fetching = this.#fetch().finally(() => {
        this.#fetching = null;
      });
    }
    await this.#fetching;
  }

  async #fetch(): Promise<void> {
    try {
      this.#find = createLocalJWKSet(await this.#source());
      this.#fetchedMs = monotonicMs();
      this.#failure = null;
    } catch (cause) {
      this.#failure = { cause, atMs: monotonicMs() };
      this.#log?.warn({ error: reasonOf(cause) }, 'the keys of the issuer cannot be fetched');
    }
  }

  #ageMs(): number {
    return monotonicMs() - this.#fetchedMs;
  }

  #unavailable(): JwksUnavailable {
    return new JwksUnavailable(this.#failure?.cause ?? null);
  }
}

const BYTES_MAX = 256 * 1_024;
const KEYS_MAX = 100;
const FETCH_MS_MAX = 5_000;

/** Rejects while the keys are not available. */
export type JwksSource = () => Promise<JSONWebKeySet>;

export type Fetch = (
  url: string,
  init: {
    readonly redirect: 'error';
    readonly signal: AbortSignal;
    readonly headers: { readonly accept: string };
  },
) => Promise<Response>;

/**
 * `jwks`: an http(s) URL, a `file:` URL, a path, or the set itself as JSON. Default: from the issuer's discovery document.
 * Answers are bounded in size, in number and in time, and redirects are not followed.
 */
export function jwksSource(
  jwks: string | undefined,
  issuer: string | null,
  fetch: Fetch = globalThis.fetch,
): JwksSource {
  if (jwks === undefined) {
    if (issuer === null) throw new InvalidArgumentError('Name the issuer of JWTs, or where its keys are.');
    const discovery = discoveryOf(issuer);
    return async () => keySetOf(await fetchJson(fetch, await discovered(fetch, discovery, issuer)));
  }
  if (jwks.trimStart().startsWith('{')) {
    const set = keySetOf(parsed(jwks, 'The JWKS'));
    return async () => set;
  }
  if (/^https?:/i.test(jwks)) {
    const url = urlOf(jwks, 'The JWKS');
    return async () => keySetOf(await fetchJson(fetch, url));
  }
  const path = /^file:/i.test(jwks) ? new URL(jwks) : jwks;
  return async () => keySetOf(parsed(await readFile(path, 'utf8'), 'The file of the JWKS'));
}

/** Whether the set needs no network. */
export function isLocal(jwks: string | undefined): boolean {
  return jwks !== undefined && !/^https?:/i.test(jwks);
}

/** Whether the keys come from another machine without TLS. */
export function isInTheClear(url: string | null): boolean {
  return url !== null && /^http:/i.test(url) && URL.canParse(url) && !isLoopback(new URL(url).hostname);
}

function discoveryOf(issuer: string): string {
  const url = urlOf(issuer, 'The issuer');
  return `${url.replace(/\/$/, '')}/.well-known/openid-configuration`;
}

/** Refuses the document of another issuer, and one that points from https to http: others could sign for the issuer. */
async function discovered(fetch: Fetch, discovery: string, issuer: string): Promise<string> {
  const document = await fetchJson(fetch, discovery);
  const { issuer: named, jwks_uri: uri } = document as {
    readonly issuer?: unknown;
    readonly jwks_uri?: unknown;
  };
  if (named !== issuer) throw new Error(`${discovery} is the document of another issuer.`);
  if (typeof uri !== 'string') throw new Error(`${discovery} names no jwks_uri.`);
  const url = urlOf(uri, 'The jwks_uri');
  if (/^https:/i.test(issuer) && !/^https:/i.test(url))
    throw new Error(`${discovery} points away from https.`);
  return url;
}

function urlOf(text: string, what: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new InvalidArgumentError(`${what} has to be an http or https URL, not ${JSON.stringify(text)}.`);
  }
  return text;
}

async function fetchJson(fetch: Fetch, url: string): Promise<object> {
  const late = new AbortController();
  const cancel = after(FETCH_MS_MAX, () =>
    late.abort(new Error(`${url} took longer than ${FETCH_MS_MAX} ms.`)),
  );
  try {
    const response = await fetch(url, {
      redirect: 'error',
      signal: late.signal,
      headers: { accept: 'application/json' },
    });
    if (response.status !== 200) throw new Error(`${url} answered with status ${response.status}.`);
    return parsed(await limitedText(response, url), url);
  } finally {
    cancel();
  }
}

async function limitedText(response: Response, url: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > BYTES_MAX) throw new Error(`${url} sent more than ${BYTES_MAX} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string, where: string): object {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new InvalidArgumentError(`${where} is not JSON.`, { cause: error });
  }
  if (typeof value === 'object' && value !== null) return value;
  throw new InvalidArgumentError(`${where} is not a JSON object.`);
}

const ASYMMETRIC = ['RSA', 'EC', 'OKP'];

/** Public keys only: with a shared secret, every service that can check a JWT could sign one. */
function keySetOf(value: object): JSONWebKeySet {
  const { keys } = value as { readonly keys?: unknown };
  if (!Array.isArray(keys)) throw new InvalidArgumentError('The JWKS has no list of keys.');
  if (keys.length > KEYS_MAX) throw new InvalidArgumentError(`The JWKS has more than ${KEYS_MAX} keys.`);
  return { keys: keys.filter(isVerifying) };
}

function isVerifying(key: unknown): key is JWK {
  if (typeof key !== 'object' || key === null || !('kty' in key)) return false;
  return typeof key.kty === 'string' && ASYMMETRIC.includes(key.kty);
}
