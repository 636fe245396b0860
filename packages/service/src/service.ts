/** Builds the service: a store, the parts that answer, start and end. */
import { setMaxListeners } from 'node:events';
import { hostname } from 'node:os';
import { pid } from 'node:process';
import type { FastifyInstance } from 'fastify';
import { InvalidArgumentError, type Store } from 'holdfast';
import { type Logger, pino } from 'pino';
import { after, monotonicMs } from './clock.js';
import { dashboard } from './dashboard/index.js';
import { health } from './health/index.js';
import { History } from './history/history.js';
import { answerKnownHostsOnly, isLoopback, refuseOtherSites } from './http/addresses.js';
import { type Audit, auditLog } from './http/audit.js';
import type { Tls } from './http/certificates.js';
import { type Limits, limitsOf } from './http/limits.js';
import { pollIntervalsOf } from './http/poll-intervals.js';
import type { Authenticator } from './http/principal.js';
import { Readiness } from './http/readiness.js';
import { makeServer } from './http/server.js';
import type { Part, ServiceParts } from './http/service-parts.js';
import { metrics } from './metrics/index.js';
import { openapi } from './openapi/index.js';
import { ServiceEvents } from './service-events.js';
import { v1, withReadableNames } from './v1/index.js';
import { v2 } from './v2/index.js';
import { RequestQueues } from './waiting/request-queues.js';
import { ServiceClient } from './waiting/service-client.js';

export interface ServiceOptions {
  /** Keeps the locks. Its opener closes it, after the service. An SQLite store needs `liveness: false`. */
  readonly store: Store;
  /** Authentication. Without it every client may do everything, and the service listens on loopback only. */
  readonly auth?: Authenticator;
  /** Listens beyond loopback without authentication. Default false. */
  readonly insecure?: boolean;
  /** Host names besides `localhost` to answer to without authentication. `['*']` is any name. Default none. */
  readonly allowedHosts?: readonly string[];
  /** The audit log of evictions. An eviction that cannot be logged is refused. Default: the log, at any log level. */
  readonly audit?: Audit;
  /** How long `/readyz` answers 503 before the service closes, for load balancers. Default 0. */
  readonly drainMs?: number;
  readonly limits?: Partial<Limits>;
  /** The request log, among others. Default: nothing is logged. */
  readonly log?: Logger;
  readonly tls?: Tls;
  /** Addresses or networks of trusted proxies, whose `x-forwarded-for` is used. Default none. */
  readonly trustProxy?: readonly string[];
  /** The name of this service in its history, if several use one store. Default: `host:pid`. */
  readonly name?: string;
  /** Whether to serve the dashboard at `/`. Default true. */
  readonly dashboard?: boolean;
  /** Parts besides the built-in ones. */
  readonly parts?: readonly Part[];
}

export interface Service {
  readonly app: FastifyInstance;
  /** Events, for example for counting. */
  readonly events: ServiceEvents;
  /** Starts to listen; resolves to the URL. Default a free port. */
  listen(options?: { readonly host?: string; readonly port?: number }): Promise<string>;
  /** Rejects when the store does not answer; with an `UnsupportedError` when it has to be set up first. */
  checkStore(): Promise<void>;
  /**
   * Drains, then answers open requests, ends waiting ones with `closing`, and withdraws their claims. Everything except
   * draining takes at most `limits.closeMs`, even if the store hangs.
   */
  close(): Promise<void>;
}

/**
 * For `localhost`, Fastify would make a second server for `::1`: without the limits of connections and without renewed
 * certificates, and closing would not wait for it.
 */
const LOCALHOST = '127.0.0.1';

const noAudit: Audit = () => undefined;
const PARTS: readonly Part[] = [v1, v2, health, metrics];

/** Locks belong to clients, which outlive the service: a lock freed by the service's death would have two holders. */
function checkStore({ name, traits }: Store): void {
  if (traits.livenessPollMs === null) return;
  throw new InvalidArgumentError(
    `The store ${name} frees the locks of a process that has died, and the service would take those of its clients along. ` +
      'Open it with `liveness: false`, or with `?liveness=off` in its URL.',
  );
}

export function createService(options: ServiceOptions): Service {
  const { store, auth, insecure = false, allowedHosts = [], drainMs = 0, tls, trustProxy = [] } = options;
  checkStore(store);
  const log = options.log ?? pino({ enabled: false });
  const limits = limitsOf(options.limits ?? {});
  const events = new ServiceEvents();
  const closing = new AbortController();
  // One listener per open stream.
  setMaxListeners(0, closing.signal);
  const app = makeServer({
    ...{ log, limits, events, auth, closing: closing.signal, tls, trustProxy },
    rewriteUrl: (url) => (url.startsWith('/v1/') ? withReadableNames(url) : url),
  });
  if (!auth) {
    refuseOtherSites(app);
    answerKnownHostsOnly(app, allowedHosts);
  }
  const history = new History(options.name ?? `${hostname()}:${pid}`, events, limits);
  const client = new ServiceClient(store, events, (command, reply) => history.replied(command, reply));
  const queues = new RequestQueues(client, events, limits.waiters);
  const intervals = pollIntervalsOf(store);
  const readiness = new Readiness(client, events, intervals.readyMs);
  const parts: ServiceParts = {
    ...{ store, log, limits, client, queues, events, history, intervals, readiness },
    holds: queues.holds,
    audit: options.audit ?? (options.log ? auditLog(options.log) : noAudit),
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
      log.info({ drainMs }, 'draining: /readyz answers 503, everything else still works');
      await new Promise<void>((resolve) => {
        after(drainMs, resolve);
      });
    }
    const untilMs = monotonicMs() + limits.closeMs;
    closing.abort();
    const cancel = after(limits.closeMs, () => {
      log.warn('closing: open requests are cut off');
      app.server.closeAllConnections();
    });
    queues.close();
    await app.close();
    cancel();
    await client.closeWithin(Math.max(0, untilMs - monotonicMs()));
    await auth?.close?.();
  }

  return {
    app,
    events,
    async listen({ host = '127.0.0.1', port = 0 } = {}) {
      if (!auth && !insecure && !isLoopback(host)) {
        throw new InvalidArgumentError(
          `Without authentication the service listens on loopback only, not on "${host}". Configure authentication (\`auth\`; for the command \`--api-keys FILE\` or \`--jwt-issuer URL\`), or allow all requests (\`insecure\`; for the command \`--insecure\`).`,
        );
      }
      return await app.listen({ host: host.toLowerCase() === 'localhost' ? LOCALHOST : host, port });
    },
    checkStore: () => readiness.check(),
    close() {
      ended ??= end();
      return ended;
    },
  };
}
