/** Runs the service from a configuration. Closes what it opened. */
import { openStore } from 'holdfast';
import { type Logger, pino } from 'pino';
import { auditFile, checkAuditFile } from './auth/audit.js';
import { createAuth } from './auth/authenticator.js';
import { tlsFromFiles } from './auth/tls.js';
import { type Cancel, within } from './clock.js';
import { type ServiceConfig, shownConfig } from './config/index.js';
import { type Audit, auditLog } from './http/audit.js';
import type { Authenticator } from './http/principal.js';
import { version } from './http/version.js';
import type { Output } from './log-output.js';
import { createService, type Service } from './service.js';
import { openLog, type ServiceLog, standardOutput } from './service-log.js';
import { checkStore } from './store-check.js';

export interface Running {
  /** Its address. */
  readonly url: string;
  /** Whether every client may do everything. */
  readonly open: boolean;
  close(): Promise<void>;
}

/** The limit for closing the store: a store that hangs must not keep the process alive. */
const STORE_CLOSE_MS = 1_000;

/** The log goes to `output`. Default stdout. */
export async function serve(config: ServiceConfig, output: Output = standardOutput()): Promise<Running> {
  const serviceLog = openLog(config.logLevel, output);
  try {
    return await serveWith(config, serviceLog);
  } catch (error) {
    await serviceLog.close();
    throw error;
  }
}

async function serveWith(config: ServiceConfig, serviceLog: ServiceLog): Promise<Running> {
  const { log } = serviceLog;
  if (config.audit !== null) checkAuditFile(config.audit);
  const audit = config.audit === null ? auditIn(serviceLog) : auditFile(config.audit);
  const auth = authOf(config, log);
  const tls = config.tls && tlsFromFiles(config.tls);
  const store = await openStore(servedStore(config.store));
  let service: Service | null = null;
  let stopChecking: Cancel = () => undefined;
  const close = async (): Promise<void> => {
    stopChecking();
    await service?.close();
    // Both at once, because each may take a second, and the process has to exit in time.
    await Promise.all([within(STORE_CLOSE_MS, store.close(), undefined), serviceLog.close()]);
  };
  try {
    service = createService({
      ...{ store, log, audit },
      limits: config.limits,
      insecure: config.insecure,
      allowedHosts: config.allowedHosts,
      drainMs: config.drainMs,
      trustProxy: config.trustProxy,
      ...(auth && { auth }),
      ...(tls && { tls }),
    });
    const { events } = service;
    serviceLog.onDrop((lines) => events.emit('dropped', { lines }));
    stopChecking = await checkStore(service, log);
    const url = await service.listen({ host: config.host, port: config.port });
    log.info(startOf(config, url), 'listening');
    return { url, open: auth === undefined, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Audit entries in the log, at any log level. An eviction must not be done before its entry is written. */
function auditIn({ append }: ServiceLog): Audit {
  let written = Promise.resolve();
  const write = (line: string): void => {
    written = append(line);
  };
  const audit = auditLog(pino({ name: 'holdfast' }, { write }));
  return (entry) => {
    void audit(entry);
    return written;
  };
}

/** The first log line. Passwords in URLs are hidden. */
function startOf(config: ServiceConfig, url: string): object {
  const { apiKeys, jwt, audit, tls } = config;
  const ways = [...(apiKeys === null ? [] : ['api-keys']), ...(jwt === null ? [] : ['jwt'])];
  return {
    version: version(),
    url,
    store: shownConfig(config).store,
    auth: ways.join(' and ') || 'none',
    tls: tls !== null,
    audit: audit ?? 'log',
  };
}

function authOf(config: ServiceConfig, log: Logger): Authenticator | undefined {
  const { apiKeys, jwt, principalLimits: limits } = config;
  if (apiKeys === null && jwt === null) return undefined;
  return createAuth({
    ...(apiKeys !== null && { apiKeys }),
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

/** Locks belong to clients, which outlive the service, so on SQLite its end must not free them. */
function servedStore(url: string): string {
  if (!url.startsWith('sqlite:') || url.includes('?')) return url;
  return `${url}?liveness=off`;
}
