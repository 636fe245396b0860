/** Who asks, and what they may do. Without auth everybody is `anonymous` and may do everything. */
import type { FastifyRequest } from 'fastify';

export type Role = 'read' | 'lock' | 'admin';

/** An acquire, for limits that count by principal. */
export interface Undertaking {
  readonly key: string;
  readonly waitMs: number;
  /** The hold as text, where the client brought it. */
  readonly hold?: string;
  /** Others may hold it at the same time: a permit of several, or a reader. */
  readonly shared?: boolean;
}

/** The tokens of all who hold this key now, as the store tells. */
export type TokensOf = (key: string) => Promise<readonly number[]>;

export interface Principal {
  /** For logs and the audit: never a secret. */
  readonly id: string;
  /** What holders are called that name no owner of their own. */
  readonly owner: string;
  may(role: Role, namespace: string): boolean;
  /**
   * What the keys begin with that it may have now, in order, none beginning with another; `['']` for all. Nothing else
   * is looked for. `may` decides on every key all the same.
   */
  reach(role: Role): readonly string[];
  /** The longest that it may hold a lock without renewal. Any time where it is missing. */
  readonly ttlMsMax?: number;
  /** Another request that is neither a renewal nor a release. Throws a `Problem` when there are too many a second. */
  request?(): void;
  /** Work that counts as so many requests against the rate, and is never refused. */
  spend?(requests: number): void;
  /**
   * Resolves when a renewal or a release may be begun: at once, or, for one who spent more than the rate gives, after the
   * one before it. `over` is awaited by the next one.
   */
  turn?(over: Promise<void>): Promise<void>;
  /** Throws a `Problem` when this principal may not keep a lock for so long. */
  checkTtl?(key: string, ttlMs: number): void;
  /**
   * Before an acquire. Rejects with a `Problem` when this principal has too much already, which the store is asked about
   * first: some of it may have ended through another process. Gives what to call when the acquire is over.
   */
  undertake?(what: Undertaking, tokensOf: TokensOf): Promise<() => void>;
  /** Told after every grant (with its token) and renewal, for how long; with 0 after a release or a loss. */
  holds?(key: string, hold: string, ttlMs: number, token?: number): void;
}

export interface Authenticator {
  /** Throws a `Problem` with code `unauthorized` for whoever is not known. */
  authenticate(request: FastifyRequest): Principal | Promise<Principal>;
  /** Called when the service closes. */
  close?(): void | Promise<void>;
}

export const ANONYMOUS: Principal = {
  id: 'anonymous',
  owner: 'anonymous',
  may: () => true,
  reach: () => [''],
};

/** What a route declares in its `config`. A route that declares nothing is refused to everybody. */
export interface Needs {
  /** `public`: no principal at all is needed. */
  readonly needs: Role | 'public';
  /** The namespace concerned; null when the handler asks `request.may` for every key itself. */
  readonly scope?: (request: FastifyRequest) => string | null;
  /**
   * What counts against the rate of a principal. `request`, the default: every request. `failure`, for renewals and
   * releases, which are never refused for want of room: those that end nothing and extend nothing. `command`: the
   * handler counts.
   */
  readonly counts?: 'request' | 'failure' | 'command';
}
