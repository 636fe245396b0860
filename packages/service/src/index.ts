/** The lock service: public names, nothing else. */

export * from './auth/index.js';
export {
  type ConfigSources,
  configFrom,
  type JwtConfig,
  type ServiceConfig,
  shownConfig,
} from './config/index.js';
export { SETTINGS, type Setting, type SettingName } from './config/settings.js';
export { type Audit, type AuditEntry, auditLog } from './http/audit.js';
export { DEFAULT_LIMITS, type Limits } from './http/limits.js';
export type { Authenticator, Needs, Principal, Role, Undertaking } from './http/principal.js';
export { Problem, type ProblemCode } from './http/problem.js';
export type { Part, ServiceParts } from './http/service-parts.js';
export type { Output } from './log-output.js';
export { type Running, serve } from './serve.js';
export { createService, type Service, type ServiceOptions } from './service.js';
export { type ServiceEventDetails, type ServiceEventName, ServiceEvents } from './service-events.js';
export { centralStore, centralStoreNames } from './v1/settings.js';
