/** Public names of authentication and API keys. */
export type { PrincipalLimits } from './allowance.js';
export {
  type ApiKeyChange,
  type ApiKeyInfo,
  auditFile,
  type CreatedKey,
  createApiKey,
  type KeyWanted,
  listApiKeys,
  revokeApiKeys,
} from './api-keys.js';
export { type AuthOptions, createAuth } from './authenticator.js';
export type { JwtOptions } from './jwt.js';
export { tlsFromFiles } from './tls.js';
