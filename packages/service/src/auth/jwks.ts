/**
 * The issuer's keys, kept for a while. They are asked for again when they are five minutes old, and, at most every
 * thirty seconds, when a token names a key that is not among them. While the issuer does not answer, keys of at most
 * an hour are still gone by; after a failure it is left alone for some seconds. Many who ask at once are one question.
 * Not being able to tell is `JwksUnavailable`, never "unknown key".
 */
import { createLocalJWKSet, errors, type FlattenedJWSInput, type JWSHeaderParameters } from 'jose';
import type { Logger } from 'pino';
import { monotonicMs } from '../clock.js';
import { reasonOf } from './api-key-file.js';
import type { JwksSource } from './jwks-source.js';

const FRESH_MS = 5 * 60_000;
const STALE_MS_MAX = 60 * 60_000;
const UNKNOWN_KEY_MS = 30_000;
const AFTER_FAILURE_MS = 3_000;

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
}

const TIMES: JwksTimes = {
  freshMs: FRESH_MS,
  staleMsMax: STALE_MS_MAX,
  unknownKeyMs: UNKNOWN_KEY_MS,
  afterFailureMs: AFTER_FAILURE_MS,
};

export class Jwks {
  readonly #source: JwksSource;
  readonly #log: Logger | undefined;
  readonly #times: JwksTimes;
  #find: Finder | null = null;
  #fetchedMs = Number.NEGATIVE_INFINITY;
  #failure: { readonly cause: unknown; readonly atMs: number } | null = null;
  #fetching: Promise<void> | null = null;

  constructor(source: JwksSource, log?: Logger, times: Partial<JwksTimes> = {}) {
    this.#source = source;
    this.#log = log;
    this.#times = { ...TIMES, ...times };
  }

  /** The key that a token was signed with, by its `kid` and `alg` alone: a key in the token itself counts for nothing. */
  async keyFor(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<SigningKey> {
    if (this.#ageMs() > this.#times.freshMs) await this.#refresh();
    const find = this.#find;
    if (!find || this.#ageMs() > this.#times.staleMsMax) throw this.#unavailable();
    try {
      return await find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      return await this.#lookAgain(header, token, error);
    }
  }

  /** The issuer may have a new key. If it cannot be asked, nobody can say that the key is wrong. */
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

  async #refresh(): Promise<void> {
    const failedMs = this.#failure?.atMs ?? Number.NEGATIVE_INFINITY;
    if (!this.#fetching && monotonicMs() - failedMs < this.#times.afterFailureMs) return;
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = null;
    });
    await this.#fetching;
  }

  async #fetch(): Promise<void> {
    try {
      this.#find = createLocalJWKSet(await this.#source());
      this.#fetchedMs = monotonicMs();
      this.#failure = null;
    } catch (cause) {
      this.#failure = { cause, atMs: monotonicMs() };
      this.#log?.warn({ error: reasonOf(cause) }, 'the keys of the issuer cannot be had');
    }
  }

  #ageMs(): number {
    return monotonicMs() - this.#fetchedMs;
  }

  #unavailable(): JwksUnavailable {
    return new JwksUnavailable(this.#failure?.cause ?? null);
  }
}
