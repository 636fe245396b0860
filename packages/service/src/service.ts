/** Puts the service together: a store, the parts that answer, and how it begins and ends. */
import { setMaxListeners } from 'node:events';
import type { FastifyInstance } from 'fastify';
import { InvalidArgumentError, type Store } from 'holdfast';
import { type Logger, pino } from 'pino';
import { Bulletin } from './bulletin.js';
import { after } from './clock.js';
import { dashboard } from './dashboard/index.js';
import { health } from './health/index.js';
import { type Limits, limitsOf } from './http/limits.js';
import { answerLoopbackNamesOnly, isLoopback, refuseOtherSites } from './http/loopback.js';
import type { Authenticator } from './http/principal.js';
import { makeServer, type Tls } from './http/server.js';
import type { Part, ServiceParts } from './http/service-parts.js';
import { Desk } from './lines/desk.js';
import { Lines } from './lines/lines.js';
import { metrics } from './metrics/index.js';
import { v1, withReadableNames } from './v1/index.js';
import { v2 } from './v2/index.js';

export interface ServiceOptions {
  /** Where the locks are. Who opened it closes it, after the service. */
  readonly store: Store;
  /** Who may do what. Without it everybody may do everything, and the service listens on loopback only. */
  readonly auth?: Authenticator;
  /** Listen beyond loopback without auth. */
  readonly insecure?: boolean;
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
  /** Answers what is in flight, ends what waits with `closing`, and takes back what was claimed for nobody. */
  close(): Promise<void>;
}

/** Every part is one entry here. */
const PARTS: readonly Part[] = [v1, v2, health, metrics];

export function createService(options: ServiceOptions): Service {
  const { store, auth, insecure = false, tls, trustProxy = [] } = options;
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
  if (!auth) refuseOtherSites(app);
  if (!auth && !insecure) answerLoopbackNamesOnly(app);
  const desk = new Desk(store, bulletin);
  const lines = new Lines(desk, bulletin, limits.waiters);
  const parts: ServiceParts = { store, log, limits, desk, lines, bulletin, closing: closing.signal };
  const page = options.dashboard === false ? [] : [dashboard];
  for (const part of [...PARTS, ...page, ...(options.parts ?? [])]) {
    app.register(async (scope) => {
      await part.register(scope, parts);
    });
  }
  let ended: Promise<void> | null = null;

  async function end(): Promise<void> {
    closing.abort();
    const cancel = after(limits.closeMs, () => {
      log.warn('closing: what is still in flight is cut off');
      app.server.closeAllConnections();
    });
    await lines.close();
    await app.close();
    cancel();
    await desk.close(limits.closeMs);
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
    close() {
      ended ??= end();
      return ended;
    },
  };
}
