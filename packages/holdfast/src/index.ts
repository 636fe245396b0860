/** The public names. */
export type {
  AcquireOptions,
  AdoptOptions,
  DrainOptions,
  Duration,
  Election,
  ElectOptions,
  EvictOptions,
  GetOrCreateOptions,
  HolderInfo,
  KeyChange,
  KeyInfo,
  Leader,
  Lease,
  LeaseGroup,
  LeaseState,
  ListOptions,
  Lockable,
  LockEventName,
  LockEvents,
  Locks,
  LocksOptions,
  Metadata,
  ObserveOptions,
  ReadWrite,
  ReleaseOptions,
  SharedOptions,
  SignalSource,
  TryResult,
  WaiterInfo,
  WatchOptions,
  WorkOptions,
} from './api.js';
export { assertLocked, currentLease } from './lease/work-context.js';
export { createLocks } from './locks.js';
export {
  type AppliedMigration,
  type Migration,
  type MigrationOptions,
  migrationOf,
  openStore,
} from './open-store.js';
export {
  AcquireTimeoutError,
  type ErrorCode,
  HoldfastError,
  InvalidArgumentError,
  LeaseLostError,
  type LossReason,
  StoreError,
  UnsupportedError,
} from './protocol/errors.js';
export type { Finding, Guarantees, Store, Traits } from './protocol/store.js';
