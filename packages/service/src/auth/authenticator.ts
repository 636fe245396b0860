/**
 * Authentication by `Authorization: Bearer` with an API key or a JWT. Rights are looked up on every check, so a revoked API key
 * or an expired JWT also ends open streams and waits.
 */
import type { FastifyRequest } from 'fastify';
import { InvalidArgumentError } from 'holdfast';
import type { Logger } from 'pino';
import { wallMs } from '../clock.js';
import { addressGroup } from '../http/addresses.js';
import { Bucket, retryAfter } from '../http/bucket.js';
import type { Authenticator, Principal, Role, TokensOf, Undertaking } from '../http/principal.js';
import { Problem } from '../http/problem.js';
import { type Allowance, Allowances, type PrincipalLimits, principalLimitsOf } from './allowance.js';
import { idIn, KEY_PREFIX } from './api-key.js';
import { ApiKeyRing } from './api-key-ring.js';
import { type JwtOptions, JwtReader } from './jwt.js';
import { allows, prefixesOf, type Right } from './rights.js';

export interface AuthOptions {
  /** The file of API keys. */
  readonly apiKeys?: string;
  readonly jwt?: JwtOptions;
  /** For every principal. */
  readonly limits?: Partial<PrincipalLimits>;
  readonly log?: Logger;
}

export function createAuth(options: AuthOptions): Authenticator {
  if (options.apiKeys === undefined && options.jwt === undefined) {
    throw new InvalidArgumentError('Name the file of API keys, or the issuer of JWTs, or both.');
  }
  return new Gate(options);
}

class Gate implements Authenticator {
  readonly #ring: ApiKeyRing | null;
  readonly #jwt: JwtReader | null;
  readonly #allowances: Allowances;
  readonly #attempts = new Attempts();

  constructor({ apiKeys, jwt, limits = {}, log }: AuthOptions) {
    this.#ring = apiKeys === undefined ? null : new ApiKeyRing(apiKeys, log);
    this.#jwt = jwt === undefined ? null : new JwtReader(jwt, log);
    this.#allowances = new Allowances(principalLimitsOf(limits));
  }

  /** Answers at once for an API key. A JWT may have to wait for the keys of its issuer. */
  authenticate(request: FastifyRequest): Principal | Promise<Principal> {
    const credential = credentialOf(request);
    if (credential.startsWith(KEY_PREFIX)) return this.#byKey(credential, request);
    return this.#byJwt(credential, request);
  }

  #byKey(text: string, request: FastifyRequest): Principal {
    const id = idIn(text);
    // Also for a refused API key, so that the log shows which one was tried.
    if (id !== null) request.note.keyId = id;
    const ring = this.#ring;
    if (!ring) throw this.#refused(addressOf(request), 'This service does not accept API keys.');
    if (!ring.isUsable) {
      // This is a failure of the service, not a wrong API key.
      throw new Problem('auth-unavailable', 'The API keys cannot be read at the moment. Try again.');
    }
    const key = id === null ? null : ring.find(id, text);
    if (key) return this.#principal(key.principalId, key.name, () => ring.rightsOf(key.id));
    // Counted per address and API key, so that one program with a revoked one does not cause 429s for others.
    const address = addressOf(request);
    const guesser = id !== null && ring.knows(id) ? `${address} ${id}` : address;
    throw this.#refused(guesser, 'The API key is unknown or no longer valid.');
  }

  async #byJwt(jwt: string, request: FastifyRequest): Promise<Principal> {
    if (!this.#jwt) throw this.#refused(addressOf(request), 'This service accepts API keys only.');
    try {
      const { subject, rights, untilMs } = await this.#jwt.read(jwt);
      return this.#principal(`jwt:${subject}`, subject, () => (wallMs() < untilMs ? rights : []));
    } catch (error) {
      if (error instanceof Problem && error.code === 'unauthorized')
        this.#attempts.failed(addressOf(request));
      throw error;
    }
  }

  #principal(id: string, owner: string, rights: () => readonly Right[]): Principal {
    return new KnownPrincipal(id, owner, rights, this.#allowances.of(id));
  }

  #refused(guesser: string, detail: string): Problem {
    this.#attempts.failed(guesser);
    return unauthorized(detail, ' error="invalid_token"');
  }
}

/** A class instead of an object of functions, because every request makes one. */
class KnownPrincipal implements Principal {
  readonly id: string;
  readonly owner: string;
  /** Current rights. */
  readonly #rights: () => readonly Right[];
  readonly #allowance: Allowance;

  constructor(id: string, owner: string, rights: () => readonly Right[], allowance: Allowance) {
    this.id = id;
    this.owner = owner;
    this.#rights = rights;
    this.#allowance = allowance;
  }

  may(role: Role, namespace: string): boolean {
    return allows(this.#rights(), role, namespace);
  }

  prefixes(role: Role): readonly string[] {
    return prefixesOf(this.#rights(), role);
  }

  get ttlMsMax(): number {
    return this.#allowance.ttlMsMax;
  }

  request(): void {
    this.#allowance.request();
  }

  spend(requests: number): void {
    this.#allowance.spend(requests);
  }

  turn(over: () => Promise<void>): Promise<unknown> | null {
    return this.#allowance.turn(over);
  }

  checkTtl(key: string, ttlMs: number): void {
    this.#allowance.checkTtl(key, ttlMs);
  }

  undertake(what: Undertaking, tokensOf: TokensOf): Promise<() => void> {
    return this.#allowance.undertake(what, tokensOf);
  }

  holds(key: string, hold: string, ttlMs: number, token?: number): void {
    this.#allowance.holds(key, hold, ttlMs, token);
  }
}

/** The address is missing when the client has left already. */
function addressOf({ ip }: FastifyRequest): string {
  return addressGroup(ip ?? '');
}

const BEARER = /^Bearer +([^\s]+) *$/i;

function credentialOf({ headers }: FastifyRequest): string {
  const { authorization } = headers;
  if (authorization === undefined) throw unauthorized('Send an API key or a JWT: "Authorization: Bearer …".');
  const credential = BEARER.exec(authorization)?.[1];
  if (credential === undefined)
    throw unauthorized('The Authorization header has to be "Bearer" and one API key or JWT.');
  return credential;
}

function unauthorized(detail: string, why = ''): Problem {
  return new Problem('unauthorized', detail, { headers: { 'www-authenticate': `Bearer${why}` } });
}

const BURST = 10;
const PER_SECOND = 0.2;
const REMEMBERED_MAX = 10_000;

/**
 * Slows down guessing. Ten wrong credentials from one address are answered 401 at once; then one every five seconds, the others
 * 429. Only failures are counted and refused: a valid API key or JWT is accepted, even if others from that address fail.
 */
class Attempts {
  readonly #buckets = new Map<string, Bucket>();

  /** Counts a wrong guess, and throws when it was one too many. */
  failed(who: string): void {
    const bucket = this.#buckets.get(who) ?? new Bucket(PER_SECOND, BURST);
    // Moved to the end: the addresses without failures for the longest time are forgotten first.
    this.#buckets.delete(who);
    this.#buckets.set(who, bucket);
    if (this.#buckets.size > REMEMBERED_MAX) this.#forget();
    if (!bucket.take()) throw tooMany(bucket);
  }

  #forget(): void {
    for (const [who, bucket] of this.#buckets) {
      if (this.#buckets.size <= REMEMBERED_MAX && !bucket.isFull) return;
      this.#buckets.delete(who);
    }
  }
}

function tooMany(bucket: Bucket): Problem {
  const headers = retryAfter(bucket.waitMs);
  return new Problem('rate-limited', 'Too many wrong API keys or JWTs from this address. Try again later.', {
    headers,
  });
}
