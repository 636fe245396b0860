/** Who asks, and what they may do. Without auth everybody is `anonymous` and may do everything. */
import type { FastifyRequest } from 'fastify';

export type Role = 'read' | 'lock' | 'admin';

/** What somebody is about to do, for limits that count by principal. */
export interface Undertaking {
  readonly key: string;
  readonly ttlMs: number;
  readonly waitMs: number;
  /** The hold as text, where the client brought it or renews it. */
  readonly hold?: string;
  /** It is held already: refusing that for want of room would lose the lock. */
  readonly renews?: boolean;
  /** Others may hold it at the same time: a permit of several, or a reader. */
  readonly shared?: boolean;
}

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
  /** A request was as much work as so many more, which counts against its rate. */
  spend?(requests: number): void;
  /** Throws a `Problem` when this principal has too much already; gives what to call when the waiting is over. */
  undertake?(what: Undertaking): () => void;
  /** Told after every grant and renewal, for how long; with 0 after a release or a loss. */
  holds?(key: string, hold: string, ttlMs: number): void;
  /** Told when a hold has a place in the store's line, for how long unless it asks again; with 0 when it has none. */
  queues?(key: string, hold: string, forMs: number): void;
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
}
