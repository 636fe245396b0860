/** The service as a program: a configuration, made to run. What it opens, it closes. */
import { openStore } from 'holdfast';
import { type Logger, pino } from 'pino';
import { auditEvictions, auditFile, auditLog } from './auth/audit.js';
import { createAuth } from './auth/authenticator.js';
import { tlsFromFiles } from './auth/tls.js';
import type { ServiceConfig } from './config/index.js';
import type { Authenticator } from './http/principal.js';
import { createService, type Service } from './service.js';

export interface Running {
  /** Where it answers. */
  readonly url: string;
  /** Whether everybody may do everything. */
  readonly open: boolean;
  close(): Promise<void>;
}

export async function serve(config: ServiceConfig): Promise<Running> {
  const log = pino({ name: 'holdfast', level: config.logLevel });
  const auth = authOf(config, log);
  const tls = config.tls && tlsFromFiles(config.tls);
  const store = await openStore(servedStore(config.store));
  let service: Service | null = null;
  try {
    service = createService({
      store,
      log,
      limits: config.limits,
      insecure: config.insecure,
      trustProxy: config.trustProxy,
      ...(auth && { auth }),
      ...(tls && { tls }),
    });
    const audit = config.audit === null ? auditLog(log) : auditFile(config.audit);
    auditEvictions(service.bulletin, audit, log);
    const url = await service.listen({ host: config.host, port: config.port });
    return { url, open: auth === undefined, close: () => closeAll(service, store) };
  } catch (error) {
    await closeAll(service, store);
    throw error;
  }
}

function authOf(config: ServiceConfig, log: Logger): Authenticator | undefined {
  const { keys, jwt, principalLimits: limits } = config;
  if (keys === null && jwt === null) return undefined;
  return createAuth({
    ...(keys !== null && { keys }),
    ...(jwt && {
      jwt: {
        issuer: jwt.issuer,
        audience: jwt.audience?.split(',').map((text) => text.trim()) ?? null,
        ...(jwt.jwks !== null && { jwks: jwt.jwks }),
        rights: jwt.rights,
      },
    }),
    limits,
    log,
  });
}

async function closeAll(service: Service | null, store: { close(): Promise<void> }): Promise<void> {
  await service?.close();
  await store.close();
}

/** Locks are held for clients, who outlive a service: on SQLite its end must not end theirs. */
function servedStore(url: string): string {
  if (!url.startsWith('sqlite:') || url.includes('?')) return url;
  return `${url}?liveness=off`;
}
