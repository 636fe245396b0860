/** The protocol, for authors of stores and ports. */
export * from './commands.js';
export * from './constants.js';
export { type Decision, decide } from './decide.js';
export { durationMs, parseDuration, TTL_MS_MAX, TTL_MS_MIN } from './durations.js';
export * from './errors.js';
export { compareKeys, keysInOrder, listAround } from './keys.js';
export { checkKey, checkMetadata, checkNamespace, checkOwner, checkPrefix, checkReason } from './names.js';
export {
  checkVersion,
  EMPTY_STATE,
  type Eviction,
  expendableAt,
  type Holder,
  type HoldId,
  type Mark,
  type Rest,
  type State,
  sameHold,
  type Waiter,
} from './state.js';
export type * from './store.js';
export { snapshotOf } from './view.js';
