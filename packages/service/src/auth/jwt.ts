/**
 * Verifies a JWT, and reads its subject and rights. Only signatures made with a private key are accepted, regardless of
 * the algorithm that the JWT names; keys come from the issuer's set alone (`jku`, `x5u`, `jwk` and the like are ignored);
 * issuer, audience, expiry and subject are required.
 */
import { createHash } from 'node:crypto';
import { InvalidArgumentError } from 'holdfast';
import { errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from 'jose';
import type { Logger } from 'pino';
import { monotonicMs, wallMs } from '../clock.js';
import { forgetOldest } from '../forget-oldest.js';
import { Problem } from '../http/problem.js';
import {
  type Fetch,
  isInTheClear,
  isLocal,
  Jwks,
  type JwksTimes,
  JwksUnavailable,
  jwksSource,
  type SigningKey,
} from './jwks.js';
import { type Right, rightOf, rightsOf } from './rights.js';

export interface JwtOptions {
  /** Null: any issuer whose keys are in `jwks`. */
  readonly issuer: string | null;
  /** The audience that JWTs must name. Null: JWTs for other services are accepted too. */
  readonly audience: string | readonly string[] | null;
  /** A URL, a path, or the key set itself as JSON. Default: from the issuer's discovery document. */
  readonly jwks?: string;
  /** Accepted algorithms. Default: all safe ones. */
  readonly algorithms?: readonly string[];
  /** Tolerated difference of clocks. Default and maximum 60 s. */
  readonly skewMs?: number;
  /** The claim with the rights: a list of texts, or one text with spaces. Default `holdfast`. */
  readonly claim?: string;
  /** Rights of JWTs without that claim. Default none. */
  readonly rights?: readonly string[];
  readonly fetch?: Fetch;
  readonly times?: Partial<JwksTimes>;
}

const ALGORITHMS: readonly string[] = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];
const SKEW_MS_MAX = 60_000;
/** How long a valid JWT is accepted without checking it again. */
const SEEN_MS_MAX = 30_000;
const TOKEN_LETTERS_MAX = 8_192;
const SUBJECT_BYTES_MAX = 256;
/** Three parts; the last is a signature. */
const TOKEN = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

export class JwtReader {
  readonly #jwks: Jwks;
  readonly #seen: SeenTokens;
  readonly #options: JwtOptions;
  readonly #algorithms: string[];
  readonly #skewMs: number;
  readonly #rights: readonly Right[];

  constructor(options: JwtOptions, log?: Logger) {
    const { issuer, audience, algorithms = ALGORITHMS, skewMs = SKEW_MS_MAX } = options;
    if (issuer === '' || (issuer === null && options.jwks === undefined)) {
      throw new InvalidArgumentError('The issuer of JWTs is not named.');
    }
    if (audience?.length === 0 || [audience].flat().includes('')) {
      throw new InvalidArgumentError('Without an audience, JWTs for any other service would be accepted.');
    }
    const weak = algorithms.find((name) => !ALGORITHMS.includes(name));
    if (weak !== undefined || algorithms.length === 0) {
      throw new InvalidArgumentError(
        `${String(weak)} is not accepted. Algorithms are: ${ALGORITHMS.join(', ')}.`,
      );
    }
    if (!(skewMs >= 0 && skewMs <= SKEW_MS_MAX)) {
      throw new InvalidArgumentError(`skewMs is ${skewMs}, but has to be from 0 to ${SKEW_MS_MAX}.`);
    }
    this.#options = options;
    this.#algorithms = [...algorithms];
    this.#skewMs = skewMs;
    this.#rights = rightsOf(options.rights ?? []);
    // A file is cheap to check: a key that was removed from it ends within about a second.
    const own = isLocal(options.jwks) ? { freshMs: 1_000, unknownKeyMs: 1_000 } : {};
    const times = { ...own, ...options.times };
    this.#seen = new SeenTokens(Math.min(SEEN_MS_MAX, times.freshMs ?? SEEN_MS_MAX));
    const source = jwksSource(options.jwks, issuer, options.fetch);
    this.#jwks = new Jwks(source, log, times);
    if (isInTheClear(options.jwks ?? issuer)) {
      log?.warn(
        "the issuer's keys are fetched over plain http: anybody on the way can replace them and sign JWTs",
      );
    }
  }

  async read(token: string): Promise<Bearer> {
    if (token.length > TOKEN_LETTERS_MAX)
      throw notAccepted(`The JWT is longer than ${TOKEN_LETTERS_MAX} characters.`);
    if (!TOKEN.test(token)) throw notAccepted('This is neither an API key nor a signed JWT.');
    const seen = this.#seen.find(token);
    if (seen) return seen;
    const bearer = this.#bearer(await this.#verified(token));
    this.#seen.add(token, bearer);
    return bearer;
  }

  async #verified(token: string): Promise<JWTPayload> {
    const { issuer, audience } = this.#options;
    const options: JWTVerifyOptions = {
      ...(issuer !== null && { issuer }),
      ...(audience !== null && { audience: [audience].flat() }),
      algorithms: this.#algorithms,
      clockTolerance: this.#skewMs / 1_000,
      currentDate: new Date(wallMs()),
      requiredClaims: ['exp', 'sub'],
    };
    try {
      return (await jwtVerify(token, (header, jws) => this.#jwks.keyFor(header, jws), options)).payload;
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw problemOf(error);
      return await this.#tried(token, error, options);
    }
  }

  /** Tries several keys, for a JWT without a `kid`. */
  async #tried(
    token: string,
    candidates: AsyncIterable<SigningKey>,
    options: JWTVerifyOptions,
  ): Promise<JWTPayload> {
    for await (const key of candidates) {
      try {
        return (await jwtVerify(token, key, options)).payload;
      } catch (error) {
        if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw problemOf(error);
      }
    }
    throw problemOf(new errors.JWSSignatureVerificationFailed());
  }

  #bearer({ sub = '', exp = 0, ...claims }: JWTPayload): Bearer {
    if (
      // The issuer may sign any value.
      typeof sub !== 'string' ||
      sub === '' ||
      Buffer.byteLength(sub) > SUBJECT_BYTES_MAX ||
      /\p{Cc}/u.test(sub) ||
      !sub.isWellFormed()
    ) {
      throw notAccepted(
        `The subject of the JWT is invalid: use 1 to ${SUBJECT_BYTES_MAX} bytes, no control characters.`,
      );
    }
    const claim = claims[this.#options.claim ?? 'holdfast'];
    return {
      subject: sub,
      rights: claim === undefined ? this.#rights : claimed(claim),
      untilMs: exp * 1_000 + this.#skewMs,
    };
  }
}

/** Other texts give no right, because the issuer may use the claim for other services, too. */
function claimed(claim: unknown): readonly Right[] {
  const texts = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : [];
  return texts
    .slice(0, 100)
    .flatMap((text: unknown) => (typeof text === 'string' ? (rightOf(text) ?? []) : []));
}

function problemOf(error: unknown): Problem {
  if (error instanceof JwksUnavailable) {
    const detail = 'The issuer of JWTs does not answer, so the JWT cannot be checked. Try again.';
    return new Problem('auth-unavailable', detail, { cause: error.cause, headers: { 'retry-after': '3' } });
  }
  if (error instanceof errors.JWTExpired) return notAccepted('The JWT has expired.');
  if (error instanceof errors.JWTClaimValidationFailed) {
    return notAccepted(`The claim "${error.claim}" of the JWT is not accepted.`);
  }
  if (error instanceof errors.JWKSNoMatchingKey) return notAccepted('The JWT is signed with an unknown key.');
  if (error instanceof errors.JOSEAlgNotAllowed)
    return notAccepted('The algorithm of the JWT is not accepted.');
  // Any other error of the signature or of its key.
  return notAccepted('The signature of the JWT is not valid.', error);
}

function notAccepted(detail: string, cause?: unknown): Problem {
  return new Problem('unauthorized', detail, {
    cause,
    headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
  });
}

interface Bearer {
  readonly subject: string;
  readonly rights: readonly Right[];
  /** Epoch milliseconds, with the tolerance. */
  readonly untilMs: number;
}

const REMEMBERED_MAX = 1_000;

/**
 * JWTs that were verified a moment ago: checking a signature takes longer than everything else about a request. Limited in
 * number and time, so that JWTs end soon after the issuer removes their key. Only digests are kept.
 */
class SeenTokens {
  readonly #ageMsMax: number;
  readonly #seen = new Map<string, { readonly bearer: Bearer; readonly atMs: number }>();

  constructor(ageMsMax: number) {
    this.#ageMsMax = ageMsMax;
  }

  find(token: string): Bearer | null {
    const name = nameOf(token);
    const found = this.#seen.get(name);
    if (!found) return null;
    const isGood = monotonicMs() - found.atMs < this.#ageMsMax && wallMs() < found.bearer.untilMs;
    if (isGood) return found.bearer;
    this.#seen.delete(name);
    return null;
  }

  add(token: string, bearer: Bearer): void {
    this.#seen.set(nameOf(token), { bearer, atMs: monotonicMs() });
    forgetOldest(this.#seen, REMEMBERED_MAX, (oldest) => this.#seen.delete(oldest));
  }
}

function nameOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}
