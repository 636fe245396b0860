/**
 * The principal of a request and its rights. Without authentication all clients are `anonymous` and may do everything.
 */
import type { FastifyRequest } from 'fastify';

export type Role = 'read' | 'lock' | 'admin';

/** An acquire, for limits that count by principal. */
export interface Undertaking {
  readonly key: string;
  readonly waitMs: number;
  /** The hold as text, if the client sent one. */
  readonly hold?: string;
  /** Whether others may hold it at the same time: a permit of several, or a reader. */
  readonly shared?: boolean;
}

/** Tokens of the current holders of a key, read from the store. */
export type TokensOf = (key: string) => Promise<readonly number[]>;

export interface Principal {
  /** For the request log and the audit log: never a secret. */
  readonly id: string;
  /** The owner of holds without an owner of their own. */
  readonly owner: string;
  may(role: Role, namespace: string): boolean;
  /**
   * Prefixes of the keys that it may use now, in order, none starting with another; `['']` for all keys. Only these are
   * listed, and `may` is still checked for every key.
   */
  prefixes(role: Role): readonly string[];
  /** Longest ttl. Default no limit. */
  readonly ttlMsMax?: number;
  /** Counts a request other than a renewal or release. Throws a `Problem` when there are too many per second. */
  request?(): void;
  /** Counts work against the rate without refusing it. */
  spend?(requests: number): void;
  /**
   * Before a renewal or a release: null when it may start at once. For a principal over its rate, resolves after the one
   * before it; the next one waits for `over`.
   */
  turn?(over: () => Promise<void>): Promise<unknown> | null;
  /** Throws a `Problem` when this principal may not hold a lock for this long. */
  checkTtl?(key: string, ttlMs: number): void;
  /**
   * Called before an acquire. Rejects with a `Problem` when this principal has too many locks or waiters. The store is read
   * first: some may have ended through another process. Returns a function to call when the acquire is over.
   */
  undertake?(what: Undertaking, tokensOf: TokensOf): Promise<() => void>;
  /** Called after every grant (with its token) and renewal with the ttl, and after a release or a loss with 0. */
  holds?(key: string, hold: string, ttlMs: number, token?: number): void;
}

export interface Authenticator {
  /** Throws a `Problem` with code `unauthorized` for an unknown client. */
  authenticate(request: FastifyRequest): Principal | Promise<Principal>;
  /** Called when the service closes. */
  close?(): void | Promise<void>;
}

export const ANONYMOUS: Principal = {
  id: 'anonymous',
  owner: 'anonymous',
  may: () => true,
  prefixes: () => [''],
};

/** Declared by a route in its `config`. A route without it is refused to all clients. */
export interface Needs {
  /** `public`: no principal at all is needed. */
  readonly needs: Role | 'public';
  /** The namespace of the request; null when the handler checks `request.may` for every key itself. */
  readonly scope?: (request: FastifyRequest) => string | null;
  /**
   * The requests that count against the rate of a principal. `request`, the default: every request. `failure`, for
   * renewals and releases, which are never refused: only requests without effect. `command`: the handler counts.
   */
  readonly counts?: 'request' | 'failure' | 'command';
}

/** For a route that has `:namespace` in its path. */
export function onNamespace(needs: Role, counts: Needs['counts'] = 'request'): Needs {
  return { needs, counts, scope: ({ params }) => (params as { readonly namespace: string }).namespace };
}
