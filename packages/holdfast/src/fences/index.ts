/** Guards for the resource's side: what makes a resource refuse a stale token. */
export { type SqlDialect, type SqlGuard, type SqlGuardOptions, type SqlStatement, sqlGuard } from './sql.js';
