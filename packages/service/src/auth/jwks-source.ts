/**
 * Where the keys come from that tokens are signed with: a URL, a file, a text, or whatever the issuer's discovery
 * document points to. What comes back is bounded in size, in number and in time, and redirects are not followed.
 */
import { readFile } from 'node:fs/promises';
import { InvalidArgumentError } from 'holdfast';
import type { JSONWebKeySet, JWK } from 'jose';
import { after } from '../clock.js';
import { isLoopback } from '../http/loopback.js';

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

/** `jwks`: an http(s) URL, a `file:` URL, a path, or the set itself as JSON. Without it the issuer is asked. */
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

/** Whether no network is needed for it. */
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

/** A document of somebody else, or one that points from https to http, would let another sign for the issuer. */
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
  throw new InvalidArgumentError(`${where} is no JSON object.`);
}

const ASYMMETRIC = ['RSA', 'EC', 'OKP'];

/** Only keys that two different parties use: a shared secret in the set would let everybody who checks sign, too. */
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
