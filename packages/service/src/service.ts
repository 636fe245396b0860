/** Puts the service together: a store, the parts that answer, and how it begins and ends. */
import { setMaxListeners } from 'node:events';
import type { FastifyInstance } from 'fastify';
import { InvalidArgumentError, type Store } from 'holdfast';
import { type Logger, pino } from 'pino';
import { Bulletin } from './bulletin.js';
import { after, monotonicMs } from './clock.js';
import { dashboard } from './dashboard/index.js';
import { health } from './health/index.js';
import { type Audit, auditLog } from './http/audit.js';
import { type Limits, limitsOf } from './http/limits.js';
import { answerKnownHostsOnly, isLoopback, refuseOtherSites } from './http/loopback.js';
import { paceOf } from './http/pace.js';
import type { Authenticator } from './http/principal.js';
import { Readiness } from './http/readiness.js';
import { makeServer, type Tls } from './http/server.js';
import type { Part, ServiceParts } from './http/service-parts.js';
import { Desk } from './lines/desk.js';
import { Lines } from './lines/lines.js';
import { metrics } from './metrics/index.js';
import { openapi } from './openapi/index.js';
import { v1, withReadableNames } from './v1/index.js';
import { v2 } from './v2/index.js';

export interface ServiceOptions {
  /** Where the locks are. Who opened it closes it, after the service. */
  readonly store: Store;
  /** Who may do what. Without it everybody may do everything, and the service listens on loopback only. */
  readonly auth?: Authenticator;
  /** Listen beyond loopback without auth. */
  readonly insecure?: boolean;
  /** Names besides `localhost` that requests without auth may be addressed to. `['*']` is any name. Default none. */
  readonly allowedHosts?: readonly string[];
  /** Where evictions are noted. One that cannot be noted is refused. Default the log. */
  readonly audit?: Audit;
  /** How long `/readyz` says that the service ends before it does: time for load balancers to see it. Default 0. */
  readonly drainMs?: number;
  readonly limits?: Partial<Limits>;
  /** One line a request. Nothing is logged unless told. */
  readonly log?: Logger;
  readonly tls?: Tls;
  /** The addresses or networks of proxies in front of it: `x-forwarded-for` counts from these alone. */
  readonly trustProxy?: readonly string[];
  /** The page at `/`. There unless told otherwise. */
  readonly dashboard?: boolean;
  /** Parts besides the built-in ones. */
  readonly parts?: readonly Part[];
}

export interface Service {
  readonly app: FastifyInstance;
  /** What happens here, to count it. */
  readonly bulletin: Bulletin;
  /** Begins to answer; gives the address. Port 0, or none, takes a free one. */
  listen(options?: { readonly host?: string; readonly port?: number }): Promise<string>;
  /** Rejects when the store does not answer; with an `UnsupportedError` when it has to be set up first. */
  checkStore(): Promise<void>;
  /**
   * Drains, then answers what is in flight, ends what waits with `closing`, and takes back what was claimed for nobody.
   * All of it but draining takes `limits.closeMs` at most, whatever the store does.
   */
  close(): Promise<void>;
}

/** Every part is one entry here. */
const PARTS: readonly Part[] = [v1, v2, health, metrics];

export function createService(options: ServiceOptions): Service {
  const { store, auth, insecure = false, allowedHosts = [], drainMs = 0, tls, trustProxy = [] } = options;
  const log = options.log ?? pino({ enabled: false });
  const limits = limitsOf(options.limits ?? {});
  const bulletin = new Bulletin();
  const closing = new AbortController();
  // As many listen as streams are open.
  setMaxListeners(0, closing.signal);
  const app = makeServer({
    ...{ log, limits, bulletin, auth, closing: closing.signal, tls, trustProxy },
    rewriteUrl: withReadableNames,
  });
  if (!auth) {
    refuseOtherSites(app);
    answerKnownHostsOnly(app, allowedHosts);
  }
  const desk = new Desk(store, bulletin);
  const lines = new Lines(desk, bulletin, limits.waiters);
  const pace = paceOf(store);
  const readiness = new Readiness(desk, bulletin, pace.readyMs);
  const parts: ServiceParts = {
    ...{ store, log, limits, desk, lines, bulletin, pace, readiness },
    audit: options.audit ?? auditLog(log),
    closing: closing.signal,
  };
  const page = options.dashboard === false ? [] : [dashboard];
  const document = openapi(app, auth !== undefined);
  for (const part of [document, ...PARTS, ...page, ...(options.parts ?? [])]) {
    app.register(async (scope) => {
      await part.register(scope, parts);
    });
  }
  let ended: Promise<void> | null = null;

  async function end(): Promise<void> {
    if (drainMs > 0 && app.server.listening) {
      readiness.drain();
      log.info({ drainMs }, 'draining: /readyz is 503, everything else still works');
      await new Promise<void>((resolve) => {
        after(drainMs, resolve);
      });
    }
    const untilMs = monotonicMs() + limits.closeMs;
    closing.abort();
    const cancel = after(limits.closeMs, () => {
      log.warn('closing: what is still in flight is cut off');
      app.server.closeAllConnections();
    });
    // At once: a store that hangs must not use up the time of one for the other.
    await Promise.all([lines.close(limits.closeMs), app.close()]);
    cancel();
    await desk.close(Math.max(0, untilMs - monotonicMs()));
    await auth?.close?.();
  }

  return {
    app,
    bulletin,
    async listen({ host = '127.0.0.1', port = 0 } = {}) {
      if (!auth && !insecure && !isLoopback(host)) {
        throw new InvalidArgumentError(
          `Without auth the service listens on loopback only, not on "${host}". Configure auth, or say insecure.`,
        );
      }
      return await app.listen({ host, port });
    },
    checkStore: () => readiness.check(),
    close() {
      ended ??= end();
      return ended;
    },
  };
}
