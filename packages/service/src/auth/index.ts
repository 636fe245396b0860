/** Who may do what: public names of it. */
export type { PrincipalLimits } from './allowance.js';
export { auditFile } from './audit.js';
export { type AuthOptions, createAuth } from './authenticator.js';
export type { JwtOptions } from './jwt.js';
export {
  type CreatedKey,
  createKey,
  type KeyChange,
  type KeyInfo,
  type KeyWanted,
  listKeys,
  revokeKeys,
} from './keys.js';
export { tlsFromFiles } from './tls.js';
