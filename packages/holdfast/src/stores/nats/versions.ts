/** Differences between versions of the server. */
import type { ServerInfo } from './errors.js';

/**
 * Before this version, servers of a bucket with replicas compared revisions before they agreed on a message, not when
 * they stored it: of two simultaneous updates of one revision, both could succeed
 * (https://github.com/nats-io/nats-server/issues/4320). They do detect duplicate messages when storing, so every update
 * has the revision as its message id there. Records of released keys are left to the bucket's max_age.
 */
const REVISIONS_HOLD = [2, 9, 21] as const;
export const OLDEST = [2, 9, 0] as const;

type Version = readonly [major: number, minor: number, patch: number];

/** On a cluster, replicas may be added to a bucket at any time. */
export function comparesTooEarly(info: ServerInfo | undefined, replicas: number): boolean {
  if (replicas === 1 && info?.cluster === undefined) return false;
  return info === undefined || isBefore(info.version, REVISIONS_HOLD);
}

/** False for a text that is not a version. */
export function isBefore(version: string, limit: Version): boolean {
  const parts = version.split(/[.+-]/, 3).map(Number);
  for (const [index, least] of limit.entries()) {
    const part = parts[index] ?? Number.NaN;
    if (part !== least) return part < least;
  }
  return false;
}
