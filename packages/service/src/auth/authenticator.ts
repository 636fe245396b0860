/**
 * Authentication by `Authorization: Bearer` with an API key or a JWT. Rights are looked up on every check, so a revoked API key
 * or an expired JWT also ends open streams and waits.
 */
import type { FastifyRequest } from 'fastify';
import { InvalidArgumentError } from 'holdfast';
import type { Logger } from 'pino';
import { wallMs } from '../clock.js';
import { addressGroup } from '../http/client.js';
import type { Authenticator, Principal } from '../http/principal.js';
import { Problem } from '../http/problem.js';
import { type Allowance, Allowances, type PrincipalLimits, principalLimitsOf } from './allowance.js';
import { idIn, KEY_PREFIX } from './api-key.js';
import { ApiKeyRing } from './api-key-ring.js';
import { Attempts } from './attempts.js';
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

  async authenticate(request: FastifyRequest): Promise<Principal> {
    const credential = credentialOf(request);
    // The address is missing when the client has left already.
    const address = addressGroup(request.ip ?? '');
    const isKey = credential.startsWith(KEY_PREFIX);
    const keyId = isKey ? idIn(credential) : null;
    // For a refused API key too: the log has to show which one was tried.
    if (keyId !== null) request.note.keyId = keyId;
    const who = isKey ? this.#byKey(credential, address) : await this.#byToken(credential, address);
    return principalOf(who, this.#allowances.of(who.id));
  }

  #byKey(text: string, address: string): Known {
    const ring = this.#ring;
    if (!ring) throw this.#refused(address, 'This service does not accept API keys.');
    if (!ring.isUsable) throw unusable();
    const id = idIn(text);
    const key = id === null ? null : ring.find(id, text);
    if (!key) {
      // Counted per address and API key, so that one program with a revoked one does not cause 429s for others.
      const guesser = id !== null && ring.knows(id) ? `${address} ${id}` : address;
      throw this.#refused(guesser, 'The API key is unknown or no longer valid.');
    }
    const { name } = key;
    return { id: `key:${name}`, owner: name, rights: () => ring.rightsOf(key.id) };
  }

  async #byToken(token: string, address: string): Promise<Known> {
    if (!this.#jwt) throw this.#refused(address, 'This service accepts API keys only.');
    try {
      const { subject, rights, untilMs } = await this.#jwt.read(token);
      const now = (): readonly Right[] => (wallMs() < untilMs ? rights : []);
      return { id: `jwt:${subject}`, owner: subject, rights: now };
    } catch (error) {
      if (error instanceof Problem && error.code === 'unauthorized') this.#attempts.failed(address);
      throw error;
    }
  }

  #refused(guesser: string, detail: string): Problem {
    this.#attempts.failed(guesser);
    return unauthorized(detail, ' error="invalid_token"');
  }
}

interface Known {
  readonly id: string;
  readonly owner: string;
  /** Current rights. */
  rights(): readonly Right[];
}

function principalOf({ id, owner, rights }: Known, allowance: Allowance): Principal {
  return {
    id,
    owner,
    may: (role, namespace) => allows(rights(), role, namespace),
    prefixes: (role) => prefixesOf(rights(), role),
    ttlMsMax: allowance.ttlMsMax,
    request: () => allowance.request(),
    spend: (requests) => allowance.spend(requests),
    turn: (over) => allowance.turn(over),
    checkTtl: (key, ttlMs) => allowance.checkTtl(key, ttlMs),
    undertake: (what, tokensOf) => allowance.undertake(what, tokensOf),
    holds: (key, hold, ttlMs, token) => allowance.holds(key, hold, ttlMs, token),
  };
}

function credentialOf({ headers }: FastifyRequest): string {
  const { authorization } = headers;
  if (authorization === undefined) throw unauthorized('Send an API key or a JWT: "Authorization: Bearer …".');
  const [, credential] = /^Bearer +([^\s]+) *$/i.exec(authorization) ?? [];
  if (credential === undefined)
    throw unauthorized('The Authorization header has to be "Bearer" and one API key or JWT.');
  return credential;
}

function unauthorized(detail: string, why = ''): Problem {
  return new Problem('unauthorized', detail, { headers: { 'www-authenticate': `Bearer${why}` } });
}

/** A failure of the service, not a wrong API key. */
function unusable(): Problem {
  return new Problem('auth-unavailable', 'The API keys cannot be read at the moment. Try again.');
}
