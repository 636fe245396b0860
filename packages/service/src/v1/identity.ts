/**
 * Who holds, by this contract: an owner and an instance of it. They come back again and again, and holds are used once.
 * So every grant has a salt, which lies open in its metadata, and its hold is a hash of identity and salt: whoever knows
 * the identity finds the hold again, through any process of the service, and nobody else does.
 */
import { createHash } from 'node:crypto';
import type { HolderView, HoldId } from 'holdfast/protocol';

export interface Identity {
  readonly key: string;
  /** As it is shown: the name of an API key, or a token's subject. */
  readonly owner: string;
  /** Whose it is: a key and a token that have the same name are not the same. */
  readonly principal: string;
  /** A secret of the client: never shown, never stored. */
  readonly instanceId: string;
}

const METADATA = /^\{"lockServiceCentral":"([A-Za-z0-9_-]{22})"\}$/;

/** `/v2` takes no hold with a colon: there nobody can use one of these, whatever they guess. */
export function holdOf({ key, principal, instanceId }: Identity, salt: string): HoldId {
  const digest = createHash('sha256').update(JSON.stringify([key, principal, instanceId, salt]));
  return { process: `v1:${digest.digest('base64url')}`, number: 1 };
}

export function metadataOf(salt: string): string {
  return JSON.stringify({ lockServiceCentral: salt });
}

/** Null for what was not acquired through this contract. */
export function saltOf({ metadata }: HolderView): string | null {
  return METADATA.exec(metadata ?? '')?.[1] ?? null;
}
