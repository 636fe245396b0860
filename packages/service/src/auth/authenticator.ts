/**
 * Who asks: `Authorization: Bearer`, then an API key or a JSON Web Token. Without one of these nobody is let in. What
 * a principal may do is looked up every time it is asked, so a key that is revoked, or a token that expires, also ends
 * what is open already.
 */
import type { FastifyRequest } from 'fastify';
import { InvalidArgumentError } from 'holdfast';
import type { Logger } from 'pino';
import { wallMs } from '../clock.js';
import { neighbourhood } from '../http/neighbourhood.js';
import type { Authenticator, Principal } from '../http/principal.js';
import { Problem } from '../http/problem.js';
import { type Allowance, Allowances, type PrincipalLimits, principalLimitsOf } from './allowance.js';
import { idIn, KEY_PREFIX } from './api-key.js';
import { Attempts } from './attempts.js';
import { type JwtOptions, JwtReader } from './jwt.js';
import { KeyRing } from './key-ring.js';
import { allows, type Right, reachOf } from './rights.js';

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
    throw new InvalidArgumentError('Name the file of API keys, or the issuer of tokens, or both.');
  }
  return new Gate(options);
}

class Gate implements Authenticator {
  readonly #ring: KeyRing | null;
  readonly #jwt: JwtReader | null;
  readonly #allowances: Allowances;
  readonly #attempts = new Attempts();

  constructor({ apiKeys, jwt, limits = {}, log }: AuthOptions) {
    this.#ring = apiKeys === undefined ? null : new KeyRing(apiKeys, log);
    this.#jwt = jwt === undefined ? null : new JwtReader(jwt, log);
    this.#allowances = new Allowances(principalLimitsOf(limits));
  }

  async authenticate(request: FastifyRequest): Promise<Principal> {
    const credential = credentialOf(request);
    // A client that is gone already has no address any more.
    const address = neighbourhood(request.ip ?? '');
    const isKey = credential.startsWith(KEY_PREFIX);
    const keyId = isKey ? idIn(credential) : null;
    // Also of a key that is refused: the log has to tell which one was tried.
    if (keyId !== null) request.note.keyId = keyId;
    const who = isKey ? this.#byKey(credential, address) : await this.#byToken(credential, address);
    return principalOf(who, this.#allowances.of(who.id));
  }

  #byKey(text: string, address: string): Known {
    const ring = this.#ring;
    if (!ring) throw this.#refused(address, 'API keys are not taken here.');
    if (!ring.isUsable) throw unusable();
    const id = idIn(text);
    const key = id === null ? null : ring.find(id, text);
    if (!key) {
      // By address and key, so that one program with a revoked key leaves its neighbours their own 401s.
      const guesser = id !== null && ring.knows(id) ? `${address} ${id}` : address;
      throw this.#refused(guesser, 'The key is not known, or no longer good.');
    }
    const { name } = key;
    return { id: `key:${name}`, owner: name, rights: () => ring.rightsOf(key.id) };
  }

  async #byToken(token: string, address: string): Promise<Known> {
    if (!this.#jwt) throw this.#refused(address, 'Only API keys are taken here.');
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
  /** As they are at the moment. */
  rights(): readonly Right[];
}

function principalOf({ id, owner, rights }: Known, allowance: Allowance): Principal {
  return {
    id,
    owner,
    may: (role, namespace) => allows(rights(), role, namespace),
    reach: (role) => reachOf(rights(), role),
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
  if (authorization === undefined) throw unauthorized('Send a key or a token: "Authorization: Bearer …".');
  const [, credential] = /^Bearer +([^\s]+) *$/i.exec(authorization) ?? [];
  if (credential === undefined)
    throw unauthorized('The Authorization header has to be "Bearer" and one key or token.');
  return credential;
}

function unauthorized(detail: string, why = ''): Problem {
  return new Problem('unauthorized', detail, { headers: { 'www-authenticate': `Bearer${why}` } });
}

/** Not the fault of who asks, and not to be taken for a wrong key. */
function unusable(): Problem {
  return new Problem(
    'auth-unavailable',
    'The keys cannot be read, so nobody knows whether this one is good. Ask again.',
  );
}
