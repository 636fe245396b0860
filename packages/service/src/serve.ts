/** The service as a program: a configuration, made to run. What it opens, it closes. */
import { openStore } from 'holdfast';
import { pino } from 'pino';
import { auditEvictions, auditFile, auditLog } from './auth/audit.js';
import { authFromSettings } from './auth/settings.js';
import { tlsFromFiles } from './auth/tls.js';
import type { ServiceConfig } from './config/index.js';
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
  const { auth, disabled, notes } = authFromSettings(
    {
      AUTHENTICATION_DISABLED: String(config.insecure),
      JWT_ISSUER: config.jwt?.issuer ?? undefined,
      JWT_AUDIENCE: config.jwt?.audience ?? undefined,
      JWT_JWKS: config.jwt?.jwks ?? undefined,
    },
    {
      ...(config.keys !== null && { keys: config.keys }),
      ...(config.jwt && { rights: config.jwt.rights }),
      limits: config.principalLimits,
      log,
    },
  );
  for (const note of notes) log.warn(note);
  const tls = config.tls && tlsFromFiles(config.tls);
  const store = await openStore(servedStore(config.store));
  let service: Service | null = null;
  try {
    service = createService({
      store,
      log,
      limits: config.limits,
      insecure: disabled,
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

async function closeAll(service: Service | null, store: { close(): Promise<void> }): Promise<void> {
  await service?.close();
  await store.close();
}

/** Locks are held for clients, who outlive a service: on SQLite its end must not end theirs. */
function servedStore(url: string): string {
  if (!url.startsWith('sqlite:') || url.includes('?')) return url;
  return `${url}?liveness=off`;
}
