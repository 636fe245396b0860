/**
 * The identity of a holder in this contract: an owner and an instance. An identity is used again, but a hold only once. So every
 * grant has a random salt, which is visible in its metadata, and its hold is a hash of identity and salt: a client that knows
 * the identity finds the hold again, through any process of the service, and nobody else does.
 */
import { createHash } from 'node:crypto';
import type { HolderView, HoldId } from 'holdfast/protocol';

export interface Identity {
  readonly key: string;
  /** Shown: the name of an API key, or the subject of a JWT. */
  readonly owner: string;
  /** The principal: an API key and a JWT of the same name are different ones. */
  readonly principal: string;
  /** A secret of the client: never shown, never stored. */
  readonly instanceId: string;
}

const METADATA = /^\{"lockServiceCentral":"([A-Za-z0-9_-]{22})"\}$/;

/** `/v2` refuses holds with a colon, so these cannot be used there. */
export function holdOf({ key, principal, instanceId }: Identity, salt: string): HoldId {
  const digest = createHash('sha256').update(JSON.stringify([key, principal, instanceId, salt]));
  return { process: `v1:${digest.digest('base64url')}`, number: 1 };
}

export function metadataOf(salt: string): string {
  return JSON.stringify({ lockServiceCentral: salt });
}

/** Null for a lock that was not acquired through this contract. */
export function saltOf({ metadata }: HolderView): string | null {
  return METADATA.exec(metadata ?? '')?.[1] ?? null;
}
