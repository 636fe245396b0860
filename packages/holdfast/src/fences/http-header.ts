/**
 * The header by which a request carries the fencing token of its sender: `Fencing-Token: 1794781702310001 order%3A42`. That
 * is the token in decimal digits, one space, and the key with escapes as in a URL (`encodeURIComponent`). No structured
 * field (RFC 9651): its integers have 15 digits, and a token has 16.
 */
import { InvalidArgumentError, LeaseLostError } from '../protocol/errors.js';
import { checkKey } from '../protocol/names.js';
import { checkToken } from './token.js';

const FENCING_HEADER = 'Fencing-Token';
/** The code of the problem that a receiver answers to a stale token. */
export const STALE = 'stale-token';
export const PROBLEM_TYPE = 'application/problem+json';

/** What a request carries. */
export interface Fencing {
  readonly key: string;
  readonly token: number;
}

/** A lease, as far as requests need it. */
export interface FencingLease extends Fencing {
  readonly signal: AbortSignal;
  assertHeld(): void;
}

/** The headers of a request, as the web has them or as an object. Upper and lower case in names are the same. */
export interface RequestHeaders {
  readonly headers: { get(name: string): string | null } | Readonly<Record<string, unknown>>;
}

/** For a request of any client: `{ 'Fencing-Token': … }`. */
export function fencingHeaders({ key, token }: Fencing): Record<string, string> {
  checkToken(token);
  return { [FENCING_HEADER]: `${token} ${encodeURIComponent(checkKey(key))}` };
}

/** The key and token that a request carries; null without the header. Throws `InvalidArgumentError` for a malformed one. */
export function fencingOf({ headers }: RequestHeaders): Fencing | null {
  const value = valueIn(headers);
  if (value === null || value === undefined) return null;
  // Visible ASCII without a comma: Node reads other bytes as Latin-1, so a raw key would be a second key.
  const [, digits, escaped] = /^([1-9][0-9]{0,15}) ([!-+\--~]+)$/.exec(String(value)) ?? [];
  const token = Number(digits);
  if (escaped === undefined || !Number.isSafeInteger(token)) throw malformed();
  try {
    return { key: checkKey(decodeURIComponent(escaped)), token };
  } catch (cause) {
    if (cause instanceof URIError || cause instanceof InvalidArgumentError) throw malformed(cause);
    throw cause;
  }
}

function valueIn(headers: RequestHeaders['headers']): unknown {
  if (typeof headers.get === 'function') return headers.get(FENCING_HEADER);
  const name = FENCING_HEADER.toLowerCase();
  const values = Object.entries(headers)
    .filter(([other, value]) => other.toLowerCase() === name && value !== undefined)
    .map(([, value]) => value);
  if (values.length > 1) throw malformed();
  return values[0];
}

function malformed(cause?: unknown): InvalidArgumentError {
  const text = `The header ${FENCING_HEADER} is a token, a space and a key with escapes as in a URL: 17 order%3A42.`;
  return new InvalidArgumentError(text, { cause });
}

/**
 * A `fetch` for requests made under the lease. It adds the header, sends nothing when the lease is over, and aborts when
 * it is lost. Rejects with `LeaseLostError` when the receiver's `fencingCheck` refused the token.
 *
 * A redirect is returned and not followed, unless `redirect: 'follow'` is among the options of the call: the header would go
 * to wherever it leads.
 */
export function fencedFetch(lease: FencingLease, send: typeof fetch = fetch): typeof fetch {
  const own = fencingHeaders(lease);
  return async (input, init = {}) => {
    lease.assertHeld();
    const given = input instanceof Request ? input : undefined;
    const headers = new Headers(init.headers ?? given?.headers);
    for (const [name, value] of Object.entries(own)) headers.set(name, value);
    const other = init.signal ?? given?.signal;
    const signal = other ? AbortSignal.any([other, lease.signal]) : lease.signal;
    // A `Request` says 'follow' also where its caller said nothing.
    const asked = given?.redirect === 'follow' ? undefined : given?.redirect;
    const redirect = init.redirect ?? asked ?? 'manual';
    const response = await send(input, { ...init, headers, signal, redirect });
    if (!(await isStale(response))) return response;
    await response.body?.cancel();
    throw new LeaseLostError(
      `The receiver refused token ${lease.token} of "${lease.key}": a later holder has written. Stop.`,
      { key: lease.key, reason: 'replaced' },
    );
  };
}

/** Other conditions of a request are answered with 412 too. */
async function isStale(response: Response): Promise<boolean> {
  const type = response.headers.get('content-type') ?? '';
  if (response.status !== 412 || !type.startsWith(PROBLEM_TYPE)) return false;
  try {
    const problem: unknown = await response.clone().json();
    return typeof problem === 'object' && problem !== null && 'code' in problem && problem.code === STALE;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
